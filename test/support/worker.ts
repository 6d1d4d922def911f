// A database with clients and workers on it, which all end with the test.

import type { Rowlock, Worker, WorkerOptions } from 'rowlock'
import { createRowlock } from 'rowlock'
import type { JobRow } from '../../src/engine/find-job.ts'
import { rowlockDatabase, type TestRowlock } from './database.ts'
import { PATIENCE_MS, until } from './until.ts'

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: any
}

export interface Rig {
  readonly db: TestRowlock
  readonly rowlock: Rowlock
  readonly lines: LogLine[]
  readonly logger: NonNullable<WorkerOptions['logger']>
  /** Quick to look and deaf to notices, unless it is told otherwise. `url`: another way to the database. */
  worker(options: WorkerOptions, url?: string): Worker
  start(options: WorkerOptions, url?: string): Promise<Worker>
  /** Until the test rests no worker gives jobs back: one that was slow to begin its first sweep would, too. */
  holdOffReapers(): Promise<void>
  /** Wait until the job is in this state. */
  becomes(id: string, state: JobRow['state']): Promise<JobRow>
  /** Wait until nothing waits or runs. */
  idle(withinMs?: number): Promise<void>
  /** After each test. */
  rest(): Promise<void>
  drop(): Promise<void>
}

const TABLES = [
  'waiting',
  'running',
  'finished',
  'dead_letter',
  'attempt',
  'payload',
  'dedupe',
  'cancel_request',
  'queue',
  'worker',
  'sleeper',
]

export async function makeRig(name: string): Promise<Rig> {
  const db = await rowlockDatabase(name)
  const rowlock = createRowlock({ connectionString: db.url })
  const lines: LogLine[] = []
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields })
  const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const workers: Worker[] = []
  const clients: Rowlock[] = []
  const sessions: { end(): Promise<void> }[] = []
  const rig: Rig = {
    db,
    rowlock,
    lines,
    logger,
    worker(options, url) {
      const client = url === undefined ? rowlock : createRowlock({ connectionString: url })
      if (url !== undefined) clients.push(client)
      const worker = client.worker({
        poll: 50,
        pollListening: 100,
        maintenance: 100,
        listen: false,
        abortGrace: 200,
        flush: 1,
        logger,
        ...options,
      })
      workers.push(worker)
      return worker
    },
    async start(options, url) {
      const worker = rig.worker(options, url)
      await worker.start()
      return worker
    },
    async holdOffReapers() {
      const session = await db.session()
      sessions.push(session)
      await session.query(`select pg_advisory_lock(rowlock.lock_key('reap'))`)
    },
    async becomes(id, state) {
      const seen: { job?: JobRow | null } = {}
      try {
        return await until(`job ${id} is ${state}`, async () => {
          seen.job = await rowlock.job(id)
          return seen.job?.state === state ? seen.job : undefined
        })
      } catch (error) {
        throw new Error(`${(error as Error).message}; it is ${JSON.stringify(seen.job)}`)
      }
    },
    async idle(withinMs = PATIENCE_MS) {
      const left = `select count(*)::integer from (
        select from rowlock.waiting union all select from rowlock.running) as live`
      await until('nothing waits or runs', async () => (await db.value(left)) === 0, { withinMs })
    },
    async rest() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop({ grace: 0 })))
      await Promise.all(clients.splice(0).map((client) => client.close()))
      await Promise.all(sessions.splice(0).map((session) => session.end()))
      lines.length = 0
      // Rows are few: deleting them is far quicker than truncating all the days.
      const deletes = TABLES.map((table) => `delete from rowlock.${table}`)
      await db.sql(deletes.join(';'))
    },
    async drop() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop({ grace: 0 })))
      await rowlock.close()
      await db.drop()
    },
  }
  return rig
}
