// What the queues are like: counts that are exact as long as that is cheap, settings, who serves them, and how fast.

import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, type QueueRow, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { endLease, enqueue, fill, type Hand, register as registerHand } from './by-hand.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('queues')
  rowlock = createRowlock({ connectionString: db.url })
  await db.sql('alter table rowlock.waiting set (autovacuum_enabled = off)')
})
const TABLES = ['running', 'worker', 'queue', 'audit', 'dead_letter']
afterEach(() =>
  db.sql(`truncate rowlock.waiting; ${TABLES.map((table) => `delete from rowlock.${table}`).join(';')}`),
)
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

async function serve(queues: Record<string, object>, facts: object = {}): Promise<Hand> {
  const hand = await registerHand(db)
  await db.sql('update rowlock.worker set queues = $2, facts = $3 where id = $1', [hand.id, queues, facts])
  return hand
}
const names = async (...args: Parameters<Rowlock['queues']>) =>
  (await rowlock.queues(...args)).map(({ queue }) => queue)
const EMPTY: QueueRow = {
  queue: 'q',
  pausedAt: null,
  pausedBy: null,
  pausedBecause: null,
  retentionDays: 7,
  targetWaitMs: 60_000,
  concurrency: null,
  maxRunning: null,
  rate: null,
  nextStartAt: null,
  maxWaiting: null,
  whenFull: null,
  due: 0,
  dueAbout: false,
  scheduled: 0,
  scheduledAbout: false,
  retryable: 0,
  retryableAbout: false,
  running: 0,
  deadLetters: 0,
  deadLettersAbout: false,
  oldestDueAt: null,
  oldestDueAgeMs: null,
  beyondTarget: false,
  workers: 0,
  slots: 0,
  donePerMinute: 0,
  failedPerMinute: 0,
  retriedPerMinute: 0,
}
const dead = (queue: string, count: number) =>
  db.sql(
    `insert into rowlock.dead_letter (id, dead_at, available_at, enqueued_at, attempt, priority, failures, losses,
                                      queue, kind, cause)
     select nextval('rowlock.job_id'), now(), now(), now(), 1, 0, 1, 0, $1, 'k', 'x' from generate_series(1, $2)`,
    [queue, count],
  )

describe('the list', () => {
  test('has each queue once, by name: of jobs that wait, run or died, of settings and of living workers', async () => {
    expect(await names()).toEqual([])
    const hand = await serve({ 'e served': {}, default: {} })
    await endLease(db, await serve({ gone: {} }))
    await enqueue(db, { queue: 'b waits' })
    await enqueue(db, { queue: 'b waits', priority: 1 })
    await enqueue(db, { queue: 'c runs' })
    await hand.claim({ queue: 'c runs' })
    await dead('a dead', 2)
    await rowlock.setQueue('d set', { retentionDays: 1 })
    expect(await names()).toEqual(['a dead', 'b waits', 'c runs', 'd set', 'default', 'e served'])
  })

  test('comes in pages', async () => {
    await fill(db, 50, { queue: `'q' || lpad((n % 25)::text, 2, '0')` })
    const seen: string[] = []
    for (let after = ''; ; after = seen.at(-1)!) {
      const page = await names({ limit: 10, after })
      expect(page.length).toBeLessThanOrEqual(10)
      if (page.length === 0) break
      seen.push(...page)
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => `q${String(n).padStart(2, '0')}`))
  })

  test.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 1_001 }, 'limit'],
    [{ limit: '5' }, 'limit'],
    [{ after: 5 }, 'after'],
    [{ after: 'a\0' }, 'after'],
    [{ aftr: 'a' }, 'aftr'],
  ])('refuses %j', async (options, path) => {
    await expect(rowlock.queues(options as object)).rejects.toMatchObject({ code: 'INVALID_OPTION', path })
  })
})

describe('a queue', () => {
  test('that nobody ever used is a row of defaults in SQL; in TypeScript a name that is refused', async () => {
    await enqueue(db, { queue: 'the next one by name' })
    const [row] = await db.sql(`select * from rowlock.queues('nobody')`)
    expect(row).toMatchObject({ queue: 'nobody', is_known: false, due: '0', oldest_due_at: null })
    await enqueue(db, { queue: 'email' })
    const refused = expect(rowlock.queue('emial')).rejects
    await refused.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    await refused.toThrow(/"emial".*; did you mean "email"\?/)
    await expect(rowlock.queue('')).rejects.toMatchObject({ code: 'INVALID_OPTION', path: 'queue' })
  })

  test('is known by a worker that drains, and by a change that was made to it', async () => {
    await serve({ served: {} }, { draining: true })
    expect(await rowlock.queue('served')).toEqual({ ...EMPTY, queue: 'served' })
    await rowlock.pause('paused')
    await db.sql('delete from rowlock.queue')
    expect(await rowlock.queue('paused')).toEqual({ ...EMPTY, queue: 'paused' })
  })

  test('is counted by what is due, scheduled, retryable, running and dead', async () => {
    const hand = await registerHand(db)
    await fill(db, 3, { queue: `'q'`, kind: `'other'`, priority: '-5' })
    await fill(db, 5, { queue: `'q'`, cause: `'x'` })
    await fill(db, 7, { queue: `'q'`, cause: `'x'`, available_at: `clock_timestamp() + interval '1 h'` })
    await fill(db, 11, { queue: `'q'`, available_at: `clock_timestamp() + interval '1 h'` })
    await fill(db, 13, { queue: `'q2'` })
    await fill(db, 2, { queue: `'q'`, kind: `'mine'`, available_at: `clock_timestamp() - interval '3 min'` })
    await hand.claim({ queue: 'q', kinds: ['mine'], limit: 1 })
    await dead('q', 17)
    const { oldestDueAgeMs, oldestDueAt, ...row } = await rowlock.queue('q')
    expect(row).toMatchObject({ due: 9, scheduled: 11, retryable: 12, running: 1, deadLetters: 17 })
    expect(row).toMatchObject({ dueAbout: false, scheduledAbout: false, retryableAbout: false })
    expect(oldestDueAgeMs).toBeGreaterThanOrEqual(180_000)
    expect(oldestDueAgeMs! - (Date.now() - oldestDueAt!.getTime())).toBeLessThan(60_000)
    expect(row.beyondTarget).toBe(true)
    await rowlock.setQueue('q', { targetWait: '1h' })
    expect(await rowlock.queue('q')).toMatchObject({ beyondTarget: false, targetWaitMs: 3_600_000 })
  })

  test('shows its settings, and who paused it and why', async () => {
    await rowlock.setQueue('q', { retentionDays: 30, concurrency: 4 })
    await rowlock.pause('q', { actor: 'ana', reason: 'provider down' })
    expect(await rowlock.queue('q')).toEqual({
      ...EMPTY,
      pausedAt: expect.any(Date),
      pausedBy: 'ana',
      pausedBecause: 'provider down',
      retentionDays: 30,
      concurrency: 4,
    })
  })

  test('shows the living workers that take its jobs, their slots, and what all living ones ended', async () => {
    const told = (done: number, failed: number, retried: number) => ({
      by_queue: { q: { done, failed, retried } },
    })
    await serve({ q: { concurrency: 5 } }, told(10, 4, 3))
    await serve({ q: { concurrency: 7 }, other: {} }, told(20, 0, 0))
    await serve({ q: { concurrency: 9 } }, { draining: true, ...told(1, 1, 1) })
    await serve({ other: { concurrency: 9 } }, told(100, 100, 100))
    await endLease(db, await serve({ q: { concurrency: 9 } }, told(100, 100, 100)))
    expect(await rowlock.queue('q')).toEqual({
      ...EMPTY,
      workers: 2,
      slots: 12,
      donePerMinute: 31,
      failedPerMinute: 5,
      retriedPerMinute: 4,
    })
    await rowlock.setQueue('q', { concurrency: 2 })
    expect(await rowlock.queue('q')).toMatchObject({ slots: 4 })
  })
})

describe('counts', () => {
  let session: pg.Client
  beforeAll(async () => {
    session = await db.session()
  })
  /** Blocks that a look at these queues reads. */
  async function blocks(args = ''): Promise<number> {
    const text = `select * from rowlock.queues(${args})`
    const figures: number[] = []
    // An analyze in the background has functions planned anew: the least of three.
    for (let n = 0; n < 4; n++) {
      const { rows } = await session.query(`explain (analyze, buffers, format json) ${text}`)
      const { Plan: plan } = rows[0]['QUERY PLAN'][0]
      if (n > 0) figures.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
    }
    return Math.min(...figures)
  }

  test('are exact at 10,000, and at least what was seen above', async () => {
    await fill(db, 9_999, { queue: `'q'` })
    await fill(db, 1, { queue: `'q'`, kind: `'other'` })
    expect(await rowlock.queue('q')).toMatchObject({ due: 10_000, dueAbout: false })
    await fill(db, 1, { queue: `'q'`, kind: `'other'` })
    expect(await rowlock.queue('q')).toMatchObject({
      dueAbout: true,
      retryableAbout: true,
      scheduledAbout: false,
    })
    expect((await rowlock.queue('q')).due).toBeGreaterThanOrEqual(10_001)
    await dead('q', 100_000)
    expect(await rowlock.queue('q')).toMatchObject({ deadLetters: 100_000, deadLettersAbout: false })
    await dead('q', 2)
    expect(await rowlock.queue('q')).toMatchObject({ deadLetters: 100_001, deadLettersAbout: true })
  })

  test('cost the same whatever waits, and estimates are near: 1,000,000 jobs, never analysed', async () => {
    await fill(db, 300, { queue: `'small'` })
    await fill(db, 20_000, { queue: `'big'` })
    const small = await blocks(`'small'`)
    const big = await blocks(`'big'`)
    const kind = `'k' || n % 20`
    await fill(db, 600_000, { queue: `'big'`, kind })
    await fill(db, 200_000, { queue: `'big'`, kind, available_at: `clock_timestamp() + interval '1 h'` })
    await fill(db, 180_000, { queue: `'big'`, kind, cause: `'x'`, priority: 'n % 3' })
    expect(await blocks(`'small'`)).toBeLessThanOrEqual(small + 30)
    expect(await blocks(`'big'`)).toBeLessThanOrEqual(big + 12_000)
    expect(await blocks()).toBeLessThanOrEqual(25_000)

    const near = (count: number, truth: number) => Math.abs(count - truth) / truth
    const row = await rowlock.queue('big')
    expect(row).toMatchObject({ dueAbout: true, scheduledAbout: true, retryableAbout: true })
    // Of a sample of 300 blocks: five times its spread.
    expect(near(row.due, 800_000)).toBeLessThan(0.5)
    expect(near(row.scheduled, 200_000)).toBeLessThan(0.6)
    expect(near(row.retryable, 180_000)).toBeLessThan(0.6)
    expect(await rowlock.queue('small')).toMatchObject({ due: 300, dueAbout: false })
  }, 240_000)

  test('of due jobs are exact though a million are scheduled', async () => {
    await fill(db, 100_000, { queue: `'q'`, available_at: `clock_timestamp() + interval '1 h'` })
    await fill(db, 3, { queue: `'q'` })
    expect(await rowlock.queue('q')).toMatchObject({ due: 3, dueAbout: false, scheduledAbout: true })
  })
})
