// graphile-worker in a configuration.

import { makeWorkerUtils, run, type WorkerUtils } from 'graphile-worker'
import pg from 'pg'
import { handled, takeStarts, tellProgress } from './handled.ts'
import { batchesOf, commitAround, connected, eachOf, type Peer } from './shape.ts'

/** How one contender differs from another. */
export interface GraphileConfiguration {
  readonly configuration: string
  readonly options: { readonly concurrency?: number; readonly maxPoolSize?: number }
  readonly preset?: unknown
}

const SPEC = 'noop'

/** Make a contender of a configuration. */
export function graphilePeer(own: GraphileConfiguration): Peer & { starts(): [number, number][] } {
  let utils: WorkerUtils
  let pool: pg.Pool
  let runner: Awaited<ReturnType<typeof run>> | undefined
  let url = ''
  let session: pg.Client | undefined
  return {
    configuration: own.configuration,
    async prepare(place) {
      const preparing = await makeWorkerUtils({ connectionString: place.url })
      await preparing.migrate()
      await preparing.release()
    },
    async open(place) {
      url = place.url
      pool = new pg.Pool({ connectionString: url, max: 16 })
      utils = await makeWorkerUtils({ pgPool: pool, logger: quiet() } as never)
    },
    async enqueue(amount) {
      for (const ns of batchesOf(amount)) {
        await utils.addJobs(ns.map((n) => ({ identifier: SPEC, payload: { n } })))
      }
    },
    async enqueueOnes(ones) {
      await eachOf(ones, (n) => utils.addJob(SPEC, { n }))
    },
    async commit(commit) {
      session ??= await connected({ url })
      const client = session
      return commitAround(client, commit, (ns) =>
        client.query(
          `select graphile_worker.add_jobs(array(
             select json_populate_record(null::graphile_worker.job_spec, j)
               from json_array_elements($1::json) as j))`,
          [JSON.stringify(ns.map((n) => ({ identifier: SPEC, payload: { n } })))],
        ),
      )
    },
    async work() {
      tellProgress()
      runner = await run({
        connectionString: url,
        noHandleSignals: true,
        logger: quiet(),
        taskList: { [SPEC]: (payload: unknown) => handled(payload) },
        ...own.options,
        ...(own.preset !== undefined && { preset: own.preset }),
      } as never)
    },
    starts: takeStarts,
    async left() {
      session ??= await connected({ url })
      const { rows } = await session.query(
        'select (exists (select from graphile_worker._private_jobs))::integer as n',
      )
      return rows[0].n
    },
    async close() {
      await runner?.stop()
      await session?.end()
      await utils?.release()
      await pool?.end()
    },
  }
}

/** Its logger, without a line a job: writing them would be measured. */
function quiet(): unknown {
  const none = () => {}
  const logger = { scope: () => logger, error: console.error, warn: none, info: none, debug: none }
  return logger
}
