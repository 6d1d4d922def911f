// Rowlock as users run it, a client and a worker with handlers, in a configuration.

import type { StandardSchemaV1 } from '@standard-schema/spec'
import { rowlock } from '../kit/rowlock.ts'
import { handled, takeStarts, tellProgress } from './handled.ts'
import { batchesOf, commitAround, connected, eachOf, type Peer } from './shape.ts'

type Rowlock = ReturnType<typeof rowlock.createRowlock>
type Worker = ReturnType<Rowlock['worker']>

/** How one contender differs from another. */
export interface RowlockConfiguration {
  readonly configuration: string
  readonly concurrency?: number
  readonly prefetch?: number
  readonly retentionDays?: 0
  /** As users write jobs: with a schema, a timeout, a tenant, attempts and a result. Default: a bare job. */
  readonly full?: true
}

/** As the README's: what a user writes from the first day. */
const NUMBER: StandardSchemaV1<{ n: number }> = {
  '~standard': {
    version: 1,
    vendor: 'bench',
    validate: (value) =>
      typeof (value as { n?: unknown } | null)?.n === 'number'
        ? { value: value as { n: number } }
        : { issues: [{ message: 'n must be a number' }] },
  },
}

/** Make a contender of a configuration. */
export function rowlockPeer(own: RowlockConfiguration): Peer & { starts(): [number, number][] } {
  const noop =
    own.full === undefined
      ? rowlock.defineJob<{ n: number }>('noop')
      : rowlock.defineJob('noop', { input: NUMBER, timeout: '30s', retry: { maxAttempts: 8 } })
  const withOptions = (n: number) =>
    own.full === undefined ? noop.with({ n }) : noop.with({ n }, { tenantId: `tenant ${n % 100}` })
  let client: Rowlock
  let worker: Worker | undefined
  let url = ''
  let session: Awaited<ReturnType<typeof connected>> | undefined
  return {
    configuration: own.configuration,
    async prepare(place) {
      const preparing = rowlock.createRowlock({ connectionString: place.url })
      await preparing.migrate()
      if (own.retentionDays !== undefined) {
        await preparing.setQueue('default', { retentionDays: own.retentionDays })
      }
      await preparing.close()
    },
    async open(place) {
      url = place.url
      client = rowlock.createRowlock({ connectionString: url, maxConnections: 16 })
    },
    async enqueue(amount) {
      for (const ns of batchesOf(amount)) await client.enqueueMany(ns.map(withOptions))
    },
    async enqueueOnes(ones) {
      await eachOf(ones, (n) => client.enqueue(noop, { n }))
    },
    async commit(commit) {
      session ??= await connected({ url })
      const verbs = client.in(session)
      return commitAround(session, commit, (ns) => verbs.enqueueMany(ns.map((n) => noop.with({ n }))))
    },
    async work() {
      const { concurrency, prefetch } = own
      worker = client.worker({
        handlers: [
          rowlock.handle(noop, ({ input }) => {
            handled(input)
            if (own.full !== undefined) return { sent: true }
          }),
        ],
        ...(concurrency !== undefined && { queues: { default: { concurrency, prefetch } } }),
      })
      tellProgress()
      await worker.start()
    },
    starts: takeStarts,
    async left() {
      session ??= await connected({ url })
      const { rows } = await session.query(
        `select (exists (select from rowlock.running) or exists (select from rowlock.waiting))::integer as n`,
      )
      return rows[0].n
    },
    async close() {
      await worker?.stop()
      await session?.end()
      await client.close()
    },
  }
}
