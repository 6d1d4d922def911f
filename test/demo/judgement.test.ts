// The account must not balance when the books do not.

import { expect, test } from 'vitest'
import { type Evidence, judge, shortfalls } from '../../examples/demo/judgement.ts'

const mail = (id: string, reference: string) => ({ id, kind: 'send-email', reference })
const fact = (id: string, state: string, ...outcomes: string[]) => ({
  id,
  kind: 'send-email',
  state,
  cause: null,
  outcomes,
})
const book = (...entries: [string, number][]) => new Map([['send-email', new Map(entries)]])

const sound: Evidence = {
  acknowledged: [mail('1', 'a'), mail('2', 'b'), mail('3', 'c'), mail('4', 'd'), mail('5', 'e')],
  takenBack: [{ kind: 'send-email', reference: 'refused' }],
  jobs: [
    fact('1', 'done'),
    fact('2', 'done', 'lost', 'failed'),
    fact('3', 'failed', 'failed'),
    fact('4', 'dead_letter', 'failed', 'failed'),
    fact('5', 'cancelled'),
  ],
  books: book(['a', 1], ['b', 1]),
}

test('an account whose books agree with what was acknowledged balances', () => {
  const { figures, faults } = judge(sound)
  expect(faults).toEqual([])
  expect(figures).toEqual({
    enqueued: 5,
    done: 2,
    retried: 1,
    reclaimed: 1,
    failed: 1,
    dead_lettered: 1,
    cancelled: 1,
    lost: 0,
    delivered_twice: 0,
    uninvited: 0,
    unfinished: 0,
    stray: 0,
    rolled_back: 1,
  })
})

test('a job that is done and on no book is lost', () => {
  const { figures, faults } = judge({ ...sound, books: book(['a', 1]) })
  expect(figures.lost).toBe(1)
  expect(faults).toEqual(['1 acknowledged and on no book: job 2 (send-email b)'])
})

test('a job that the queue does not know any more is lost, unless its effect is on a book', () => {
  const jobs = sound.jobs.filter(({ id }) => id !== '1')
  expect(judge({ ...sound, jobs, books: book(['b', 1]) }).figures.lost).toBe(1)
  expect(judge({ ...sound, jobs }).figures).toMatchObject({ lost: 0, unfinished: 1 })
})

test('an effect that happened twice does not balance', () => {
  const { figures, faults } = judge({ ...sound, books: book(['a', 2], ['b', 1]) })
  expect(figures.delivered_twice).toBe(1)
  expect(faults).toEqual(['1 taken to the books more than once: send-email a × 2'])
})

test('an effect of a transaction that was rolled back does not balance', () => {
  const { figures, faults } = judge({ ...sound, books: book(['a', 1], ['b', 1], ['refused', 1]) })
  expect(figures.uninvited).toBe(1)
  expect(faults).toHaveLength(1)
})

test('an effect of a job that was cancelled does not balance', () => {
  expect(judge({ ...sound, books: book(['a', 1], ['b', 1], ['e', 1]) }).figures.uninvited).toBe(1)
})

test('a job that has not ended does not balance, even when its effect is there', () => {
  const jobs = [...sound.jobs.slice(1), fact('1', 'retryable', 'failed')]
  const { figures, faults } = judge({ ...sound, jobs })
  expect(figures).toMatchObject({ unfinished: 1, lost: 0 })
  expect(faults).toEqual(['1 not ended: job 1 (send-email a)'])
})

test('a job in the queue that nobody enqueued does not balance', () => {
  const { figures, faults } = judge({ ...sound, jobs: [...sound.jobs, fact('6', 'queued')] })
  expect(figures.stray).toBe(1)
  expect(faults).toEqual(['1 in the queue that nobody enqueued: job 6 (send-email)'])
})

test('a run that reclaimed nothing says so', () => {
  const { figures } = judge(sound)
  expect(shortfalls(figures, 1)).toEqual([])
  expect(shortfalls({ ...figures, reclaimed: 0 }, 0)).toEqual([
    'no worker was killed',
    'no job was reclaimed',
  ])
})
