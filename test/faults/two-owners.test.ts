// Two owners of a transactional job, judged by hand-made histories: the first is excused where its session was gone,
// for then nothing of it can commit, and not by being transactional.

import { describe, expect, test } from 'vitest'
import { check } from '../../faults/checker.ts'
import type { History } from '../../faults/history.ts'
import { job, lease, ran, rescued } from './a-history.ts'

/** Marked at 25, lost at 110 under leases that hold; what became of the session of the first is said. */
function beside(sessionLives: boolean | null): History {
  const audit = rescued().audit.map((row) => ({ ...row, kind: 'book' }))
  const marked = { ...audit[2]!, op: 'update', inTransaction: true, at: 25 } as const
  const gone = { ...audit[3]!, inTransaction: true, sessionLives }
  return rescued({
    audit: [...audit.slice(0, 3), marked, gone, ...audit.slice(4)],
    leases: [lease('worker-1', 101, 5, 1_000), lease('worker-2', 102, 5, 1_000)],
    ledger: [...ran(1, 101, 30, 200), ...ran(2, 102, 130, 140)],
    jobs: [job({ kind: 'book' })],
    booked: ['1'],
  })
}

const said = (history: History) => check(history).map(({ figure, says }) => `${figure}: ${says}`)
const TAKEN = 'double_owner: attempt 1 was taken from a worker whose lease held'
const BESIDE = 'double_owner: attempt 2 started while attempt 1 ran under a lease that held'

describe('a transactional handler that goes on beside its successor, under a lease that holds', () => {
  test('is let pass where its session was gone', () => expect(said(beside(false))).toEqual([]))

  test.each([
    ['its session lives', true],
    ['nobody knows its session', null],
  ])('is another owner where %s', (_, lives) => expect(said(beside(lives))).toEqual([BESIDE, TAKEN]))

  test('is another owner where the other began before the session was gone', () => {
    const early = ran(2, 102, 105, 140)
    expect(said({ ...beside(false), ledger: [...ran(1, 101, 30, 200), ...early] })).toContain(BESIDE)
  })
})

test.each([
  ['its session was gone', false, []],
  [
    'its session lives',
    true,
    [BESIDE, 'double_owner: attempt 1 was ended as failed, but its handler had not ended'],
  ],
])('a worker may say itself that an attempt failed where %s', (_, lives, words) => {
  const history = beside(lives)
  const attempts = history.attempts.map((row) => ({ ...row, outcome: 'failed' }))
  expect(said({ ...history, attempts })).toEqual(words)
})

test.each([
  ['lost, as it was to be cancelled', 'lease_lost', false],
  ['cancelled by its own worker', 'cancelled', true],
])('a handler that was stopped before it began may begin after it was %s: %s', (_, cause, isBad) => {
  const ledger = [...ran(1, 101, 135, 138, 'aborted'), ...ran(2, 102, 145, 150)]
  const attempts = [{ jobId: '1', attempt: 1, outcome: 'cancelled', cause }]
  const words = said(rescued({ ledger, attempts }))
  expect(words.some((word) => word.endsWith('attempt 1 started after its end (cancelled)'))).toBe(isBad)
})

test('whoever died with its worker is excused as ever', () => {
  expect(said({ ...beside(true), ledger: rescued().ledger, leases: rescued().leases })).toEqual([])
})
