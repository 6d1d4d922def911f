// The server is restarted under workers and listeners: nobody else gets what runs, and notices are heard again.

import pg from 'pg'
import {
  createRowlock,
  defineJob,
  fixed,
  handle,
  handleInTransaction,
  type Rowlock,
  type Worker,
} from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../../faults/cluster.ts'
import { silent } from '../support/ground.ts'
import { until } from '../support/until.ts'

let cluster: Cluster
let rowlock: Rowlock
const workers: Worker[] = []
beforeAll(async () => {
  cluster = await startCluster()
  rowlock = createRowlock({ connectionString: cluster.url })
  await rowlock.migrate()
})
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.stop({ grace: 0 }))))
afterAll(async () => {
  await rowlock?.close()
  await cluster?.stop()
})

const slow = defineJob<number>('slow', { retry: { backoff: fixed(0) } })
const quick = defineJob<number>('quick')
/** Asked until it is answered: the server may be away. */
const stateOf = (id: string) => rowlock.job(id).catch(() => null)

test.each(['fast', 'immediate'] as const)(
  'a restart (%s) shorter than the lease costs nobody an attempt: what runs goes on, and ends once',
  async (how) => {
    const starts: string[] = []
    const handler = handle(slow, async ({ job, signal }) => {
      starts.push(job.id)
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      signal.throwIfAborted()
    })
    for (let n = 0; n < 2; n++) {
      const worker = createRowlock({ connectionString: cluster.url }).worker({
        handlers: [handler],
        lease: 120_000,
        heartbeat: 300,
        poll: 50,
        maintenance: 100,
        logger: silent,
      })
      workers.push(worker)
      await worker.start()
    }
    const all = await rowlock.enqueueMany(Array.from({ length: 10 }, (_, n) => slow.with(n)))
    await until('all run', () => starts.length === 10)
    await cluster.restart(how)
    for (const { id } of all) {
      const job = await until(`job ${id} is done`, async () => {
        const found = await stateOf(id)
        return found?.state === 'done' ? found : undefined
      })
      expect(job).toMatchObject({ attempt: 1, failures: 0, attempts: [] })
    }
    expect(starts).toHaveLength(10)
  },
)

test.each(['fast', 'immediate'] as const)(
  'a restart (%s) costs a handler in a transaction its attempt, and its job runs again',
  async (how) => {
    let calls = 0
    const told: unknown[] = []
    const handler = handleInTransaction(slow, async ({ signal, tx }) => {
      await tx.query('select 1')
      if (++calls > 1) return
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      told.push(signal.reason.code)
    })
    const worker = createRowlock({ connectionString: cluster.url }).worker({
      handlers: [handler],
      lease: 120_000,
      heartbeat: 300,
      poll: 50,
      maintenance: 100,
      logger: silent,
    })
    workers.push(worker)
    await worker.start()
    const { id } = await rowlock.enqueue(slow, 0)
    await until('it runs', () => calls === 1)
    await cluster.restart(how)
    const job = await until('it is done', async () => {
      const found = await stateOf(id)
      return found?.state === 'done' ? found : undefined
    })
    expect(told).toEqual(['lease_lost'])
    // By the reaper or by the worker, whoever sees it first.
    expect(job).toMatchObject({ attempt: 2, failures: 1, attempts: [{ cause: 'lease_lost' }] })
    expect(['lost', 'failed']).toContain(job.attempts[0]!.outcome)
  },
)

test('after each of several restarts a worker is woken again, by one listener', async () => {
  const worker = createRowlock({ connectionString: cluster.url }).worker({
    handlers: [handle(quick, () => {})],
    // Only a notice can wake it in the time of a test.
    poll: '5m',
    pollListening: '5m',
    lease: 3_000,
    logger: silent,
  })
  workers.push(worker)
  let losses = 0
  worker.on('listening', ({ proven }) => {
    if (!proven) losses++
  })
  await worker.start()
  for (let cycle = 0; cycle < 3; cycle++) {
    await until('it listens', () => worker.status.listening)
    const before = losses
    await cluster.restart(cycle % 2 === 0 ? 'fast' : 'immediate')
    // It may be back before we are.
    await until('it has noticed', () => losses > before)
    await until('it listens again', () => worker.status.listening)
    const client = new pg.Client({ connectionString: cluster.url })
    await client.connect()
    await until('it sleeps', async () => {
      return (await client.query('select from rowlock.sleeper')).rows.length > 0
    })
    const { id } = await rowlock.enqueue(quick, cycle)
    await until('it was woken', async () => (await stateOf(id))?.state === 'done')
    const listeners = `select from pg_stat_activity where application_name = 'rowlock listen'`
    await until('one listens', async () => (await client.query(listeners)).rows.length === 1)
    await client.end()
  }
})
