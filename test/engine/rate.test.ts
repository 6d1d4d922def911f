// A rate holds over all workers, in the database's time, whatever restarts: in any time t no more starts than
// starts × t / per + burst, judged by the instants of the claims. The clock stands still unless a test moves it.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import { fill, type Hand, held, type Row, register, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('rate')
  await db.sql('create table public.clock (at timestamptz)')
  await db.sql(`insert into public.clock values ('2030-01-01 00:00:00Z')`)
  hand = await register(db, '100 years')
})
afterEach(async () => {
  await useClock(false)
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.queue, rowlock.throttle')
})
afterAll(() => db.drop())

const START = Date.parse('2030-01-01T00:00:00Z')
const useClock = (ours: boolean) =>
  db.sql(`create or replace function rowlock.now() returns timestamptz language sql volatile parallel safe
          as $$ select ${ours ? 'at from public.clock' : 'pg_catalog.clock_timestamp()'} $$`)
const clock = (ms: number) => db.sql('update public.clock set at = $1', [new Date(START + ms).toISOString()])
const set = (rate: Row | null) =>
  db.sql(`select rowlock.set_queue('default', $1)`, [JSON.stringify({ rate })])
const fillPast = (count: number) => fill(db, count, { available_at: `'2020-01-01'` })
/** How many may start at this instant, and how long until the next one may. */
async function at(ms: number, limit = 1000): Promise<[number, number | null]> {
  await clock(ms)
  const { ids, next_due: next, now } = await hand.claim({ limit })
  return [ids.length, next === null ? null : next - now]
}

/** The worst window: how many more starts than the rate lets through without its burst. */
const excess = async (starts: number, perMs: number): Promise<number> => {
  const rows = await db.sql<{ at: number }>(
    `select (extract(epoch from r.claimed_at) * 1000)::float8 as at from rowlock.running r order by 1`,
  )
  let most = 0
  for (let a = 0; a < rows.length; a++) {
    for (let b = a; b < rows.length; b++) {
      most = Math.max(most, b - a + 1 - ((rows[b]!.at - rows[a]!.at) * starts) / perMs)
    }
  }
  return most
}

describe('a rate', () => {
  test('lets its burst start at once, then one after the other, and says when', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 100, per: '1 s', burst: 10 })
    await fillPast(100)
    expect(await at(0, 4)).toEqual([4, null])
    expect(await at(0)).toEqual([6, 10])
    expect(await at(9)).toEqual([0, 1])
    expect(await at(10)).toEqual([1, 10])
    expect(await at(45)).toEqual([3, 5])
    expect(await at(5_000)).toEqual([10, 10])
  })

  test('of times that are no whole microseconds is never a start too fast', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 3, per: '1 s', burst: 1 })
    await fillPast(100)
    for (let ms = 0; ms < 4_000; ms += 1) {
      if (ms % 333 > 4) continue
      await clock(ms)
      await hand.claim()
    }
    expect(await excess(3, 1_000)).toBeLessThanOrEqual(1.000001)
    expect(await db.value('select count(*)::integer from rowlock.running')).toBeGreaterThanOrEqual(11)
  })

  test('holds over eight claimers at once, and again after a restart of all of them', async () => {
    await set({ starts: 100, per: '1 s', burst: 10 })
    await fill(db, 1_000)
    const began = performance.now()
    for (let round = 0; round < 2; round++) {
      const hands = await Promise.all(Array.from({ length: 8 }, () => register(db)))
      const target = (round + 1) * 50
      let started = await db.value<number>('select count(*)::integer from rowlock.running')
      await Promise.all(
        hands.map(async (one) => {
          while (started < target) started += (await one.claim({ limit: 3 })).ids.length
        }),
      )
    }
    const seconds = (performance.now() - began) / 1000
    const started = await db.value<number>('select count(*)::integer from rowlock.running')
    expect(await excess(100, 1_000)).toBeLessThanOrEqual(10.000001)
    expect(started).toBeLessThanOrEqual(100 * seconds + 10)
  })

  test('goes on where the clock steps back, and makes up for nothing where it steps ahead', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 10, per: '1 s', burst: 5 })
    await fillPast(100)
    expect(await at(0)).toEqual([5, 100])
    expect(await at(-3_600_000)).toEqual([0, 100])
    expect(await at(-3_599_900)).toEqual([1, 100])
    expect(await at(86_400_000)).toEqual([5, 100])
  })

  test('that is raised is not held to what was owed before, nor forgotten where it is lowered', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 1, per: '1 day', burst: 3 })
    await fillPast(100)
    expect(await at(0)).toEqual([3, 86_400_000])
    await set({ starts: 10, per: '1 s', burst: 2 })
    expect(await at(0)).toEqual([0, 100])
    expect(await at(100)).toEqual([1, 100])
    await set({ starts: 1, per: '1 min', burst: 1 })
    expect(await at(100)).toEqual([0, expect.any(Number)])
    await set(null)
    expect(await at(100, 7)).toEqual([7, null])
  })

  test('counts what is claimed, though it is handed back: a start is a claim', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 1, per: '1 s', burst: 2 })
    await fillPast(5)
    const { jobs } = await hand.claim()
    await verb(
      db,
      'hand_back',
      jobs.map((job) => held(job)),
    )
    expect(await at(0)).toEqual([0, 1_000])
  })

  test('says nothing of the next start where nothing is due', async () => {
    await useClock(true)
    await clock(0)
    await set({ starts: 1, per: '1 s', burst: 1 })
    await fillPast(1)
    expect(await at(0)).toEqual([1, 1_000])
    expect(await at(0)).toEqual([0, null])
    await fill(db, 1, { available_at: `'2030-01-01 00:00:05Z'` })
    expect(await at(0)).toEqual([0, 5_000])
  })

  test('and a limit on running jobs hold both', async () => {
    await useClock(true)
    await clock(0)
    await db.sql(
      `select rowlock.set_queue('default', '{"max_running": 3, "rate": {"starts": 1, "per": "1 s", "burst": 4}}')`,
    )
    await fillPast(20)
    expect(await at(0)).toEqual([3, 1_000])
    await db.sql('delete from rowlock.running')
    expect(await at(0)).toEqual([1, 1_000])
    expect(await at(10_000)).toEqual([2, 1_000])
  })

  test('sends a claim away that meets another one', async () => {
    await set({ starts: 100, per: '1 s', burst: 10 })
    await fill(db, 20)
    const session = await db.session()
    await session.query('begin')
    try {
      await hand.claim({ limit: 1 }, session)
      const { ids, next_due } = await (await register(db)).claim()
      // However long the claim took: it is to look again some milliseconds after its end.
      const after = await db.value('select rowlock.ms(rowlock.now())::float8')
      expect([ids, next_due! - after <= 8]).toEqual([[], true])
    } finally {
      await session.query('rollback')
    }
    await until('it is let in', async () => (await hand.claim()).ids.length === 10)
  })
})
