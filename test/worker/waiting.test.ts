// Jobs in transactions that wait for a connection: they have not begun, and nobody blames them.

import pg from 'pg'
import { createRowlock, defineJob, handleInTransaction, type Rowlock, type WorkerOptions } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let pool: pg.Pool
let rowlock: Rowlock
beforeAll(async () => {
  rig = await makeRig('waiting')
})
beforeEach(() => {
  pool = new pg.Pool({ connectionString: rig.db.url, max: 1 })
  rowlock = createRowlock({ pool })
})
afterEach(async () => {
  await rig.rest()
  await rowlock.close()
  await pool.end()
})
afterAll(() => rig.drop())

const job = defineJob<number>('job')
let calls = 0
beforeEach(() => {
  calls = 0
})
const handler = handleInTransaction(job, async () => void calls++)

async function working(options: WorkerOptions, work: () => Promise<void>): Promise<void> {
  const quick = { poll: 50, maintenance: 100, heartbeat: 100, listen: false, logger: rig.logger } as const
  const worker = rowlock.worker({ ...quick, ...options })
  await worker.start()
  try {
    await work()
  } finally {
    await worker.stop({ grace: 0 })
  }
}

test('one that waits longer than its timeout goes back to its line, and its handler is not called', async () => {
  const busy = await pool.connect()
  const { id } = await rig.rowlock.enqueue(job, 1, { timeout: 100, retry: { maxAttempts: 1 } })
  await working({ handlers: [handler] }, async () => {
    await until('it went back twice', async () => (await rig.rowlock.job(id))!.attempts.length >= 2)
    expect(calls).toBe(0)
    // From here on it has all the time, so that it is done although the machine is busy.
    await until('its next claim has more time', async () => {
      const more = `update rowlock.waiting set timeout = interval '10 min' where id = $1 returning id`
      return (await rig.db.sql(more, [id])).length === 1
    })
    busy.release()
    const row = await rig.becomes(id, 'done')
    expect(new Set(row.attempts.map(({ outcome }) => outcome))).toEqual(new Set(['handed_back']))
    expect(row.failures).toBe(0)
    expect(calls).toBe(1)
  })
  expect(pool.idleCount).toBe(pool.totalCount)
})

test('one that waits has not started, though its worker beats', async () => {
  const busy = await pool.connect()
  const { id } = await rig.rowlock.enqueue(job, 1)
  await working({ handlers: [handler] }, async () => {
    await rig.becomes(id, 'running')
    const beaten = async (since: unknown) =>
      (await rig.db.value<Date>('select max(beat_at) from rowlock.worker')) > (since as Date)
    for (const _ of [1, 2, 3]) {
      const now = await rig.db.value('select max(beat_at) from rowlock.worker')
      await until('the worker has beaten', () => beaten(now))
    }
    expect((await rig.rowlock.job(id))?.startedAt).toBeNull()
    const freed = await rig.db.value<Date>('select rowlock.now()')
    busy.release()
    const { startedAt } = await rig.becomes(id, 'done')
    expect(startedAt!.getTime()).toBeGreaterThanOrEqual(freed.getTime())
  })
})

test('waiting is no running: a pool of one times nobody out', async () => {
  const slow = handleInTransaction(job, async ({ tx }) => {
    await tx.query('select pg_sleep(0.5)')
  })
  const all = await rig.rowlock.enqueueMany(
    Array.from({ length: 10 }, (_, n) => job.with(n, { timeout: 4_000, retry: { maxAttempts: 1 } })),
  )
  await working({ handlers: [slow], queues: { default: { concurrency: 10 } } }, async () => {
    for (const { id } of all) expect(await rig.becomes(id, 'done')).toMatchObject({ failures: 0 })
  })
})

test('a worker that stops gives back what waits, and no handler is called for it later', async () => {
  const busy = await pool.connect()
  const { id } = await rig.rowlock.enqueue(job, 1)
  await working({ handlers: [handler] }, async () => {
    await until('it waits for the connection', () => pool.waitingCount === 1)
  })
  expect(await rig.rowlock.job(id)).toMatchObject({ state: 'queued', failures: 0 })
  busy.release()
  await until('the connection is back', () => pool.waitingCount === 0 && pool.idleCount === pool.totalCount)
  expect(calls).toBe(0)
  expect(await rig.rowlock.job(id)).toMatchObject({ state: 'queued', failures: 0 })
})

test('a job that is cancelled while it waits is cancelled at once', async () => {
  const busy = await pool.connect()
  const { id } = await rig.rowlock.enqueue(job, 1)
  await working({ handlers: [handler] }, async () => {
    await until('it waits for the connection', () => pool.waitingCount === 1)
    await rig.rowlock.cancel(id)
    await rig.becomes(id, 'cancelled')
  })
  busy.release()
  expect(calls).toBe(0)
})

test.each([
  [1, 0],
  [2, 1],
])('a worker with %i transactions at once on a pool of one warns %i times', async (concurrency, times) => {
  await working({ handlers: [handler], queues: { default: { concurrency } } }, async () => {})
  expect(rig.lines.filter(({ message }) => /pool has fewer/.test(message))).toHaveLength(times)
})
