// pg-boss in a configuration: what all of its contenders share.

import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import { handledMany, takeStarts, tellProgress } from './handled.ts'
import { batchesOf, commitAround, connected, eachOf, type Peer } from './shape.ts'

/** How one contender differs from another. */
export interface PgBossConfiguration {
  readonly configuration: string
  /** Workers are woken by NOTIFY; its constructor and its queue are told. */
  readonly notify?: boolean
  /** Begin to take jobs; answers what stops it. */
  work(boss: PgBoss, queue: string): Promise<() => Promise<void>>
}

const QUEUE = 'noop'

/** Make a contender of a configuration. */
export function pgBossPeer(own: PgBossConfiguration): Peer & { starts(): [number, number][] } {
  let boss: PgBoss
  let session: pg.Client | undefined
  let url = ''
  let stop: (() => Promise<void>) | undefined
  return {
    configuration: own.configuration,
    async prepare(place) {
      const preparing = new PgBoss({ connectionString: place.url })
      await preparing.start()
      await preparing.createQueue(QUEUE, { ...(own.notify === true && { notify: true }) })
      await preparing.stop()
    },
    async open(place) {
      url = place.url
      boss = new PgBoss({
        connectionString: url,
        max: 16,
        ...(own.notify === true && { useListenNotify: true }),
      })
      boss.on('error', console.error)
      await boss.start()
    },
    async enqueue(amount) {
      for (const ns of batchesOf(amount)) {
        await boss.insert(
          QUEUE,
          ns.map((n) => ({ data: { n } })),
        )
      }
    },
    async enqueueOnes(ones) {
      await eachOf(ones, (n) => boss.send(QUEUE, { n }))
    },
    async commit(commit) {
      session ??= await connected({ url })
      const client = session
      const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) }
      return commitAround(client, commit, (ns) =>
        ns.length === 1
          ? boss.send(QUEUE, { n: ns[0] }, { db })
          : boss.insert(
              QUEUE,
              ns.map((n) => ({ data: { n } })),
              { db },
            ),
      )
    },
    async work() {
      tellProgress()
      stop = await own.work(boss, QUEUE)
    },
    starts: takeStarts,
    async left() {
      session ??= await connected({ url })
      const { rows } = await session.query(
        `select (exists (select from pgboss.job where name = $1 and state < 'completed'))::integer as n`,
        [QUEUE],
      )
      return rows[0].n
    },
    async close() {
      await stop?.()
      await session?.end()
      await boss.stop({ graceful: false })
    },
  }
}

/** The loop that is its fastest: fetch and complete, so many at once. */
export async function fetchAndComplete(
  boss: PgBoss,
  queue: string,
  batch: number,
): Promise<() => Promise<void>> {
  let over = false
  const loop = async (): Promise<void> => {
    while (!over) {
      const jobs = await boss.fetch<{ n: number }>(queue, { batchSize: batch })
      if (jobs.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 2))
        continue
      }
      await boss.complete(
        queue,
        jobs.map(({ id }) => id),
      )
      handledMany(jobs.length)
    }
  }
  const looping = loop()
  return async () => {
    over = true
    await looping
  }
}
