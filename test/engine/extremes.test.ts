// One row that holds what no verb would write: the others flow, its counters saturate, and it ends.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { endLease, enqueue, fill, type Hand, held, register, stateOf, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('extremes')
  for (const name of ['priority_in_range', 'max_attempts_in_range', 'queue_fits', 'kind_fits']) {
    await db.sql(`alter table rowlock.waiting drop constraint waiting_${name}`)
  }
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql(
    'truncate rowlock.waiting, rowlock.running, rowlock.worker, rowlock.dead_letter, rowlock.attempt, rowlock.finished',
  )
  hand = await register(db)
})

const SMALL = ['-32768', '-1', '32767']
const VALUES: [string, string[]][] = [
  ['attempt', ['-2147483648', '-1', '2147483646', '2147483647']],
  ['failures', SMALL],
  ['losses', SMALL],
  ['max_attempts', SMALL],
  ['priority', SMALL],
  ['retried_from', ['-9223372036854775808', '9223372036854775807']],
  ['available_at', ["'-infinity'", "'infinity'", "'4713-01-01 BC'", "'294276-12-31'"]],
  ['enqueued_at', ["'-infinity'", "'infinity'"]],
  ['expires_at', ["'-infinity'", "'infinity'"]],
  ['timeout', ["'-178000000 years'", "'178000000 years'", "'0'"]],
  ['metadata', ["'[]'", "'5'", "'null'", `'"text"'`]],
  ['backoff', ["'[]'", "'5'", "'null'", `'"text"'`, `'{"type":{}}'`]],
  ['input', ["'null'", 'null']],
]
const CASES = VALUES.flatMap(([column, values]) => values.map((value) => [column, value] as const))

/** Neighbours in front of it and behind it, of one line. */
async function withNeighbours(column: string, value: string): Promise<string> {
  await fill(db, 5)
  const odd = await enqueue(db, { backoff: { type: 'fixed', delay_ms: 0 } })
  await fill(db, 5)
  await db.sql(`update rowlock.waiting set ${column} = ${value} where id = $1`, [odd])
  return odd
}

/** Claim until nothing is due; ends each job by the verb. */
async function drain(end: string, more: Record<string, unknown> = {}): Promise<string[]> {
  const ended: string[] = []
  for (let empty = 0; empty < 2; ) {
    const { jobs, next_due, now } = await hand.claim()
    if (jobs.length > 0)
      ended.push(
        ...(
          await verb(
            db,
            end,
            jobs.map((job) => held(job, more)),
          )
        ).map((one: string | { id: string }) => (typeof one === 'string' ? one : one.id)),
      )
    else if (next_due === null || next_due > now) empty++
  }
  return ended
}

describe('a row of the extreme', () => {
  test.each(CASES)('%s = %s: all ends well, and its neighbours with it', async (column, value) => {
    const odd = await withNeighbours(column, value)
    const ended = await drain('complete')
    expect(ended.filter((id) => id !== odd)).toHaveLength(10)
    const state = await stateOf(db, odd)
    // What is not due, too late or in no line stays behind, or is cancelled; all else is done.
    if (column === 'available_at' && /294276|'infinity/.test(value)) expect(state).toBe('queued')
    else if (column === 'expires_at' && value.includes('-')) expect(state).toBe('cancelled')
    else if (column === 'priority' && value !== '-1') expect(state).toBe('queued')
    else expect(state).toBe('done')
    expect(await db.value('select rowlock.cancel($1)', [odd])).toBe(
      state === 'queued' ? 'cancelled' : 'already_ended',
    )
  })

  test.each(CASES)('%s = %s: a failure of all is settled for all', async (column, value) => {
    const odd = await withNeighbours(column, value)
    await db.sql(`update rowlock.waiting set losses = 0 where losses > 0`)
    const { jobs } = await hand.claim()
    const moved = await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    expect(moved).toHaveLength(jobs.length)
    expect(jobs.length).toBeGreaterThanOrEqual(10)
    expect(await db.value('select count(*)::integer from rowlock.job where id = $1', [odd])).toBe(1)
  })

  test.each(CASES.filter(([column]) => column !== 'priority'))(
    '%s = %s: a loss of all is given back',
    async (column, value) => {
      await withNeighbours(column, value)
      const claimed = (await hand.claim()).jobs.length + (await hand.claim()).jobs.length
      expect(claimed).toBeGreaterThanOrEqual(5)
      await db.sql('update rowlock.running set started_at = clock_timestamp()')
      await endLease(db, hand)
      expect(await db.value('select rowlock.reap()')).toHaveLength(claimed)
    },
  )
})

describe('a counter', () => {
  test('of attempts stays at its greatest', async () => {
    const id = await enqueue(db)
    await db.sql('update rowlock.waiting set attempt = 2147483647')
    expect((await hand.claim()).jobs[0]).toMatchObject({ id, attempt: 2147483647 })
  })

  test('of failures and losses stays at its greatest, and the job ends', async () => {
    const id = await enqueue(db)
    await db.sql('update rowlock.waiting set failures = 32767, losses = 32767')
    expect((await hand.claim()).alone).toBe(true)
    await db.sql('update rowlock.running set started_at = clock_timestamp()')
    await endLease(db, hand)
    await db.sql('select rowlock.reap()')
    const [row] = await db.sql('select state, failures, losses from rowlock.job where id = $1', [id])
    expect(row).toEqual({ state: 'dead_letter', failures: 32767, losses: 32767 })
  })
})
