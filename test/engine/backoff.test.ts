// The backoff in SQL: a policy that was written by hand may hold anything, and none stops a batch.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backoff, backoffMs } from '../../src/ground/backoff.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, held, random, register, seedOf, verb } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('backoff')
})
afterAll(() => db.drop())

async function inSql(cases: readonly (readonly [unknown, number, number])[]): Promise<number[]> {
  const rows = await db.sql(
    `select rowlock.backoff_ms(c.policy, c.failures, c.dice) as ms
       from unnest($1::jsonb[], $2::integer[], $3::float[]) with ordinality as c (policy, failures, dice, n)
      order by c.n`,
    [
      cases.map(([policy]) => JSON.stringify(policy)),
      cases.map(([, n]) => n),
      cases.map(([, , dice]) => dice),
    ],
  )
  return rows.map(({ ms }) => Number(ms))
}

const FAILURES = [-1, 0, 1, 2, 3, 7, 31, 32, 62, 63, 64, 100, 101, 128, 1000, 32767, 2147483647]

test('is the rule of the client, for every policy, count and dice', async () => {
  const next = random(seedOf('backoff'))
  const policies: Backoff[] = [
    { type: 'exponential', min_ms: 5000, max_ms: 3600000 },
    { type: 'exponential', min_ms: 0, max_ms: 0 },
    { type: 'exponential', min_ms: 1, max_ms: 2592000000, factor: 10 },
    { type: 'exponential', min_ms: 1000, max_ms: 2592000000, factor: 1 },
    { type: 'exponential', min_ms: 1000, max_ms: 2592000000, factor: 1.01 },
    { type: 'fixed', delay_ms: 0 },
    { type: 'fixed', delay_ms: 2592000000 },
    { type: 'list', delays_ms: [1, 20, 300] },
  ]
  const cases = policies.flatMap((policy) =>
    FAILURES.flatMap((failures) =>
      [0, 0.5, next(), next(), 0.999999].map((dice) => [policy, failures, dice] as const),
    ),
  )
  const found = await inSql(cases)
  cases.forEach(([policy, failures, dice], i) => {
    // power() may differ in the last bit, and floor() then by one.
    const wait = backoffMs(policy, failures, () => dice)
    expect(Math.abs(found[i]! - wait), JSON.stringify([policy, failures, dice])).toBeLessThanOrEqual(1)
  })
})

const HOSTILE: unknown[] = [
  5,
  'x',
  [],
  true,
  {},
  { type: 'later' },
  { type: 7 },
  { type: 'fixed' },
  { type: 'fixed', delay_ms: 'soon' },
  { type: 'fixed', delay_ms: 1e300 },
  { type: 'fixed', delay_ms: -1 },
  { type: 'list' },
  { type: 'list', delays_ms: [] },
  { type: 'list', delays_ms: {} },
  { type: 'list', delays_ms: [null, 'x'] },
  { type: 'exponential', min_ms: 'NaN' },
  { type: 'exponential', min_ms: 1e300, max_ms: 1e308, factor: 1e300 },
  { type: 'exponential', factor: -3 },
  { type: 'exponential', min_ms: null, max_ms: [1] },
]

describe('a policy of anything at all', () => {
  test('gives a wait from 0 to 30 days', async () => {
    const cases = HOSTILE.flatMap((policy) => FAILURES.map((failures) => [policy, failures, 0.7] as const))
    for (const ms of await inSql(cases)) {
      expect(ms).toBeGreaterThanOrEqual(0)
      expect(ms).toBeLessThanOrEqual(2592000000)
    }
    expect(await db.value('select rowlock.backoff_ms(null, null, null)')).toBe('5000')
  })

  test('does not keep the jobs that fail with it from being settled', async () => {
    const hand = await register(db)
    const ids: string[] = []
    for (const _ of HOSTILE) ids.push(await enqueue(db))
    await db.sql(
      `update rowlock.waiting w set backoff = h.policy
         from unnest($1::bigint[], $2::jsonb[]) as h (id, policy) where w.id = h.id`,
      [ids, HOSTILE.map((policy) => JSON.stringify(policy))],
    )
    const { jobs } = await hand.claim()
    const moved = await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    expect(moved).toHaveLength(HOSTILE.length)
    expect(new Set(moved.map(({ to }: { to: string }) => to))).toEqual(new Set(['retryable']))
  })
})

describe('a wait that the worker says itself', () => {
  test.each([
    [0, 0],
    [-5, 0],
    [60_000, 60_000],
    [1e300, 3650 * 86_400_000],
  ])('%d ms is %d', async (asked, wait) => {
    const hand = await register(db)
    await enqueue(db, { queue: 'own' })
    const { jobs } = await hand.claim({ queue: 'own' })
    await verb(
      db,
      'snooze',
      jobs.map((job) => held(job, { after_ms: asked, ran_ms: asked })),
    )
    const due = await db.value(
      `select extract(epoch from w.available_at - a.ended_at)::float8 * 1000
         from rowlock.waiting w join rowlock.attempt a on a.job_id = w.id where w.id = $1`,
      [jobs[0]!.id],
    )
    expect(due).toBe(wait)
    await db.sql('delete from rowlock.waiting where id = $1', [jobs[0]!.id])
  })
})
