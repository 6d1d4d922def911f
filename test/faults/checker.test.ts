// The judge judged: each oracle is silent on sound histories and speaks on a broken one.

import { describe, expect, test } from 'vitest'
import { check } from '../../faults/checker.ts'
import type { History } from '../../faults/history.ts'
import {
  change,
  claimed,
  completed,
  enqueued,
  job,
  lease,
  putBack,
  ran,
  rescued,
  sound,
} from './a-history.ts'

const verdict = (history: History) =>
  check(history).map(({ oracle, figure, says }) => `${oracle} ${figure}: ${says}`)
const W1 = 'worker-1'
const W2 = 'worker-2'

describe('a history that kept its promises is let pass', () => {
  test('one job, run once', () => expect(verdict(sound())).toEqual([]))
  test('one that was lost with its worker and ran again', () => expect(verdict(rescued())).toEqual([]))
  test('a statement that inserts before it deletes', () => {
    const [gone, come] = claimed(20, 1)
    const audit = [...enqueued(10), come!, gone!, ...completed(50, 1)]
    expect(verdict(sound({ audit }))).toEqual([])
  })
  test('a handler that goes on after its lease was over, beside its successor', () => {
    expect(
      verdict(rescued({ ledger: [...ran(1, 101, 30, 200, 'aborted'), ...ran(2, 102, 130, 140)] })),
    ).toEqual([])
  })
  test('a handler that was stopped before it began, and begins beside its successor', () => {
    const ledger = [...ran(2, 102, 130, 140).slice(0, 1), ...ran(1, 101, 135, 138, 'aborted')]
    expect(verdict(rescued({ ledger: [...ledger, ...ran(2, 102, 130, 140).slice(1)] }))).toEqual([])
  })
  test('a beat that could be seen only after the lease was over', () => {
    const late = { ...lease(W1, 101, 108, 1_000), op: 'update' as const }
    expect(verdict(rescued({ leases: [...rescued().leases, late] }))).toEqual([])
  })
  test('a call whose answer never came, stored or not', () => {
    const unknown = { ref: 'b', answer: 'unknown', inTransaction: false } as const
    expect(verdict(sound({ calls: [...sound().calls, unknown] }))).toEqual([])
    expect(verdict(sound({ calls: [{ ...unknown, ref: 'a' }] }))).toEqual([])
  })
  test('claims before and after a pause', () => {
    const pauses = [15, 25].map((from) => ({ queue: 'default', from, to: from + 5 }))
    expect(verdict(sound({ pauses }))).toEqual([])
  })
  test('a call that found its dedupe key taken', () => {
    const deduped = { ref: 'b', answer: 'ok', id: '1', created: false, inTransaction: false } as const
    expect(verdict(sound({ calls: [...sound().calls, deduped] }))).toEqual([])
  })
})

/** What is broken, how, and what must be said of it. */
const BROKEN: readonly (readonly [what: string, history: History, says: string])[] = [
  // O1
  [
    'an acknowledged job is nowhere',
    sound({ audit: [], ledger: [], jobs: [] }),
    'O1 lost: a was acknowledged',
  ],
  [
    'a job left a table and came to none',
    sound({ audit: sound().audit.slice(0, -1) }),
    'O1 lost: it left running and is nowhere',
  ],
  [
    'the audit saw a job that is not there',
    sound({ jobs: [], calls: [] }),
    'O1 lost: it was done last, and is nowhere',
  ],
  [
    'a call that failed is stored',
    sound({ calls: [{ ref: 'a', answer: 'failed', inTransaction: false }] }),
    'O1 phantoms: a was answered failed and is stored 1 times',
  ],
  [
    'a call is stored twice',
    sound({
      audit: [...sound().audit, ...enqueued(60, { jobId: '2' })],
      jobs: [job(), job({ id: '2', state: 'queued' })],
    }),
    'O1 phantoms: a was answered ok and is stored 2 times',
  ],
  ['a job that nobody asked for', sound({ calls: [] }), 'O1 phantoms: nobody asked for a'],
  [
    'the business row of an acknowledged transaction is missing',
    sound({ calls: [{ ...sound().calls[0]!, inTransaction: true }] }),
    'O1 effects_broken: the business row of a is missing',
  ],
  [
    'of a rolled-back transaction the business row is there',
    sound({
      calls: [...sound().calls, { ref: 'b', answer: 'failed', inTransaction: true }],
      asked: ['b'],
    }),
    'O1 effects_broken: b: of the business row and its job only one is there',
  ],
  [
    'a transactional handler took effect twice',
    sound({ jobs: [job({ kind: 'book' })], booked: ['1', '1'] }),
    "O1 effects_broken: it is done, and its transaction's row is there 2 times",
  ],
  [
    'cancelled, it was said, and it ran',
    sound({ operations: [{ verb: 'cancel', id: '1', answer: 'cancelled' }] }),
    'O1 answers_broken: cancel answered cancelled, and it ended as done',
  ],
  [
    'a dedupe key outlives its job',
    sound({ keys: [{ queue: 'default', key: 'k', jobId: '1' }] }),
    'O1 left_open: the dedupe key k outlived it',
  ],
  [
    'two live jobs have one dedupe key',
    sound({
      audit: [...enqueued(10, { dedupeKey: 'k' }), ...enqueued(11, { jobId: '2', dedupeKey: 'k' })],
      ledger: [],
    }),
    'states answers_broken: job 1 lives and has its dedupe key as well',
  ],
  // O2
  [
    'two handlers of one job at once, the first under a lease that holds',
    rescued({
      leases: [lease(W1, 101, 5, 1_000), lease(W2, 102, 5, 1_000)],
      ledger: [...ran(1, 101, 30, 200), ...ran(2, 102, 130, 140)],
    }),
    'O2 double_owner: attempt 2 started while attempt 1 ran under a lease that held',
  ],
  [
    'a handler begins beside its successor, under a lease that holds',
    rescued({
      leases: [lease(W1, 101, 5, 1_000), lease(W2, 102, 5, 1_000)],
      ledger: [
        ...ran(2, 102, 130, 140).slice(0, 1),
        ...ran(1, 101, 135, 138),
        ...ran(2, 102, 130, 140).slice(1),
      ],
    }),
    'O2 double_owner: attempt 1 started while attempt 2 ran under a lease that held',
  ],
  [
    'a job is taken from a worker whose lease holds',
    rescued({ leases: [lease(W1, 101, 5, 1_000), lease(W2, 102, 5, 1_000)] }),
    'O2 double_owner: attempt 1 was taken from a worker whose lease held',
  ],
  [
    'a job is taken though a beat came in time',
    rescued({ leases: [...rescued().leases, { ...lease(W1, 101, 90, 1_000), op: 'update' }] }),
    'O2 double_owner: attempt 1 was taken from a worker whose lease held',
  ],
  [
    'somebody else completes it while its handler runs',
    rescued({ ledger: [...ran(1, 101, 30, 145), ...ran(2, 102, 130, 170)] }),
    'O2 double_owner: attempt 2 was ended as done, but its handler had not ended',
  ],
  [
    'somebody else fails it while its handler runs',
    sound({
      audit: [...enqueued(10), ...claimed(20, 1), ...putBack(45, 1)],
      ledger: ran(1, 101, 30, 60),
      attempts: [{ jobId: '1', attempt: 1, outcome: 'failed', cause: 'error' }],
      jobs: [job({ state: 'retryable' })],
    }),
    'O2 double_owner: attempt 1 was ended as failed, but its handler had not ended',
  ],
  [
    'a claim under a lease that is over',
    sound({ leases: [lease(W1, 101, 5, 15)] }),
    'O2 double_owner: attempt 1 was claimed under a lease that was over',
  ],
  [
    'one fence for two claims',
    rescued({
      audit: rescued().audit.map((row) => (row.claimId === null ? row : { ...row, claimId: 'the same' })),
    }),
    'O2 double_owner: claim the same took it twice',
  ],
  [
    'an idempotency key changes from one attempt to the next',
    rescued({
      ledger: [...ran(1, 101, 30), ...ran(2, 102, 130, 140).map((row) => ({ ...row, key: 'other' }))],
    }),
    'O2 effects_broken: attempt 2 had another idempotency key than those before it',
  ],
  [
    'the owner changes in place',
    sound({
      audit: [
        ...sound().audit.slice(0, 3),
        { ...sound().audit[2]!, op: 'update', workerId: W2 },
        ...sound().audit.slice(3),
      ],
    }),
    'O2 double_owner: its owner or its counts changed where it was',
  ],
  // O3
  [
    'a done job goes back to wait',
    sound({
      audit: [
        ...sound().audit,
        { ...sound().audit.at(-1)!, op: 'delete', at: 60, txid: '60' },
        change({ state: 'queued', attempt: 1, at: 60 }),
      ],
      jobs: [job({ state: 'queued' })],
    }),
    'O3 illegal_transitions: no verb takes a job from done to queued',
  ],
  [
    'a done job is changed',
    sound({ audit: [...sound().audit, { ...sound().audit.at(-1)!, op: 'update' }] }),
    'O3 illegal_transitions: it was changed, though done',
  ],
  // O4
  [
    'a start that no claim stands for',
    sound({ ledger: [...sound().ledger, ...ran(2, 101, 45, 46)] }),
    'O4 double_owner: attempt 2 started and was never claimed',
  ],
  [
    'a start in another process than the one that claimed',
    sound({ ledger: ran(1, 102, 30, 40) }),
    'O4 double_owner: attempt 1 ran in process 102, but process 101 had claimed it',
  ],
  [
    'a handler that is called twice',
    sound({ ledger: [...ran(1, 101, 30, 40), ...ran(1, 101, 41, 42).map((row) => ({ ...row, run: 2 }))] }),
    'O4 double_owner: the handler of attempt 1 was called twice',
  ],
  [
    'a start after the end',
    sound({ ledger: ran(1, 101, 60, 70) }),
    'O4 double_owner: attempt 1 started after its end (done)',
  ],
  [
    'an attempt is left out',
    sound({ audit: sound().audit.map((row) => (row.attempt === 1 ? { ...row, attempt: 2 } : row)) }),
    'O4 illegal_transitions: its attempt went from 0 to 2',
  ],
  [
    'a loss that counts no failure is called retryable',
    rescued({ audit: rescued().audit.map((row) => ({ ...row, failures: 0 })) }),
    'O4 illegal_transitions: its failures went from 0 to 0',
  ],
  [
    'a job waits though its failures are used up',
    rescued({ audit: rescued().audit.map((row) => ({ ...row, maxAttempts: 1 })) }),
    'O4 illegal_transitions: it is retryable with 1 failures of 1',
  ],
  // O5
  [
    'two handlers at once where one may run',
    sound({
      audit: [...sound().audit, ...sound().audit.map((row) => ({ ...row, jobId: '2' }))],
      ledger: [...ran(1, 101, 30, 40), ...ran(1, 101, 35, 45).map((row) => ({ ...row, jobId: '2', run: 2 }))],
      jobs: [job(), job({ id: '2', ref: 'b' })],
      calls: [...sound().calls, { ref: 'b', answer: 'ok', id: '2', created: true, inTransaction: false }],
    }),
    'O5 limits_broken: process 101 ran 2 handlers of queue default at once, of 1',
  ],
  [
    'a claim of a queue that is paused',
    sound({ pauses: [{ queue: 'default', from: 15, to: 25 }] }),
    'O5 limits_broken: attempt 1 was claimed while queue default was paused',
  ],
  // O6
  [
    'a job that never ends',
    sound({ audit: enqueued(10), ledger: [], jobs: [job({ state: 'queued' })] }),
    'O6 stuck: it is still queued',
  ],
  [
    'jobs that end too late',
    left({ unfinished: 2 }),
    'O6 stuck: 2 jobs had not ended when the bound was reached',
  ],
  ['a session is left', left({ sessions: 1 }), 'O6 left_open: 1 sessions are left'],
  [
    'a transaction is left',
    left({ idleInTransaction: 1 }),
    'O6 left_open: 1 sessions are idle in transaction',
  ],
  ['an advisory lock is left', left({ advisoryLocks: 1 }), 'O6 left_open: 1 advisory locks are left'],
  ['a worker is left', left({ workers: 1 }), 'O6 left_open: 1 workers that stopped are still registered'],
  ['a request is left', left({ cancelRequests: 1 }), 'O6 left_open: 1 requests to cancel are left'],
  ['verbs waited in a circle', left({ deadlocks: 1 }), 'O6 deadlocks: 1 deadlocks'],
  // O7
  [
    'a process died',
    sound({ mishaps: ['process 101 ended by itself (1)'] }),
    'O7 unexpected_exits: process 101',
  ],
  // The table of states
  [
    'a job is in two tables at once',
    sound({ audit: [...enqueued(10), claimed(20, 1)[1]!, ...completed(50, 1)] }),
    'states double_owner: it came to running and was queued as well',
  ],
  [
    'a job is nowhere between two transactions',
    sound({ audit: sound().audit.map((row, n) => (n === 1 ? { ...row, txid: 'another' } : row)) }),
    'states illegal_transitions: between queued and running it was nowhere',
  ],
  [
    'a transition that no verb makes',
    sound({
      audit: [
        change({ at: 10 }),
        change({ op: 'delete', at: 20 }),
        change({ phase: 'finished', state: 'done', at: 20 }),
      ],
      ledger: [],
    }),
    'states illegal_transitions: no verb takes a job from queued to done',
  ],
  ['a job is there twice', sound({ jobs: [job(), job()] }), 'states illegal_transitions: it is there twice'],
]

function left(over: Partial<History['rest']>): History {
  return sound({ rest: { ...sound().rest, ...over } })
}

describe('what is broken is said', () => {
  test.each(BROKEN)('%s', (_, history, says) => {
    const found = verdict(history)
    expect(found.some((each) => each.startsWith(says)) ? says : found).toBe(says)
  })
})

test('a deaf handler may go on beside its successor, for its slot stays taken', () => {
  const deaf = rescued({
    leases: [lease(W1, 101, 5, 1_000), lease(W2, 102, 5, 1_000)],
    ledger: [...ran(1, 101, 30, 200), ...ran(2, 102, 130, 140)],
    attempts: [{ jobId: '1', attempt: 1, outcome: 'timed_out', cause: 'timeout' }],
  })
  const ofKind = (kind: string) => ({
    ...deaf,
    audit: deaf.audit.map((row) => ({ ...row, kind })),
    jobs: [job({ kind })],
  })
  expect(verdict(ofKind('deaf'))).toEqual([])
  expect(verdict(ofKind('quick'))).toHaveLength(1)
})

test('a long history is judged in time that grows with its length', () => {
  const many = (count: number): History => {
    const ids = Array.from({ length: count }, (_, n) => String(n + 1))
    const one = sound()
    return {
      ...one,
      audit: ids.flatMap((jobId) => one.audit.map((row) => ({ ...row, jobId }))),
      ledger: ids.flatMap((jobId, n) => one.ledger.map((row) => ({ ...row, jobId, run: n }))),
      jobs: ids.map((id) => job({ id, ref: `r${id}` })),
      calls: ids.map((id) => ({ ref: `r${id}`, answer: 'ok', id, created: true, inTransaction: false })),
      concurrency: {},
    }
  }
  // Not a matter of time: twenty thousand jobs in square time would not end within this test's bound.
  expect(check(many(20_000))).toEqual([])
}, 30_000)
