// Histories made by hand: the sound one of a single job, and the means to bend it.

import type { AuditRow, History, LeaseRow, LedgerRow } from '../../faults/history.ts'

const W1 = 'worker-1'
const W2 = 'worker-2'

/** A change of job 1 by default. */
export const change = (over: Partial<AuditRow>): AuditRow => ({
  phase: 'waiting',
  op: 'insert',
  jobId: '1',
  state: 'queued',
  attempt: 0,
  failures: 0,
  maxAttempts: 3,
  claimId: null,
  workerId: null,
  claimedAt: null,
  inTransaction: false,
  queue: 'default',
  kind: 'quick',
  dedupeKey: null,
  txid: String(over.at ?? 0),
  at: 0,
  ...over,
})
const held = { phase: 'running', state: 'running' } as const

export const enqueued = (at: number, over: Partial<AuditRow> = {}) => [change({ at, ...over })]
export const claimed = (at: number, attempt: number, workerId = W1, over: Partial<AuditRow> = {}) => [
  change({ op: 'delete', at, attempt: attempt - 1, ...over }),
  change({
    ...held,
    at,
    attempt,
    workerId,
    claimId: `claim-${attempt}`,
    claimedAt: at,
    ...over,
    state: 'running',
  }),
]
const left = (at: number, attempt: number, workerId: string, over: Partial<AuditRow>) =>
  change({
    ...held,
    op: 'delete',
    at,
    attempt,
    workerId,
    claimId: `claim-${attempt}`,
    claimedAt: at,
    ...over,
  })
export const completed = (at: number, attempt: number, workerId = W1, failures = 0) => [
  left(at, attempt, workerId, { failures }),
  change({ phase: 'finished', state: 'done', at, attempt, workerId, failures }),
]
export const putBack = (at: number, attempt: number, workerId = W1, failures = 0) => [
  left(at, attempt, workerId, { failures }),
  change({ state: 'retryable', at, attempt, failures: failures + 1 }),
]

export const lease = (workerId: string, pid: number, at: number, expiresAt: number): LeaseRow => ({
  op: 'insert',
  workerId,
  pid,
  at,
  expiresAt,
})
/** What the handler of one attempt wrote; no `to`: it never wrote its end. */
export const ran = (
  attempt: number,
  pid: number,
  from: number,
  to?: number,
  how: LedgerRow['how'] = 'returned',
) => {
  const row = { jobId: '1', attempt, key: 'k', pid, run: 1, how: null }
  const start: LedgerRow = { ...row, phase: 'start', at: from }
  return to === undefined ? [start] : [start, { ...row, phase: 'end' as const, how, at: to }]
}

/** One job, enqueued at 10, claimed at 20, run from 30 to 40, done at 50. */
export function sound(over: Partial<History> = {}): History {
  return {
    audit: [...enqueued(10), ...claimed(20, 1), ...completed(50, 1)],
    leases: [lease(W1, 101, 5, 100), lease(W2, 102, 5, 1_000)],
    ledger: ran(1, 101, 30, 40),
    calls: [{ ref: 'a', answer: 'ok', id: '1', created: true, inTransaction: false }],
    operations: [],
    pauses: [],
    deaths: [],
    mishaps: [],
    jobs: [job()],
    attempts: [],
    keys: [],
    asked: [],
    booked: [],
    concurrency: { default: 1 },
    deaf: ['deaf'],
    transactional: ['book'],
    rest: {
      unfinished: 0,
      sessions: 0,
      idleInTransaction: 0,
      advisoryLocks: 0,
      workers: 0,
      cancelRequests: 0,
      deadlocks: 0,
    },
    ...over,
  }
}

export const job = (over: Partial<History['jobs'][number]> = {}) =>
  ({
    id: '1',
    state: 'done',
    ref: 'a',
    kind: 'quick',
    queue: 'default',
    dedupeKey: null,
    retriedFrom: null,
    ...over,
  }) as History['jobs'][number]

/** Lost by the first worker whose lease was over at 100, run again by the second. */
export function rescued(over: Partial<History> = {}): History {
  return sound({
    audit: [
      ...enqueued(10),
      ...claimed(20, 1),
      ...putBack(110, 1),
      ...claimed(120, 2, W2, { failures: 1, state: 'retryable' }),
      ...completed(150, 2, W2, 1),
    ],
    ledger: [...ran(1, 101, 30), ...ran(2, 102, 130, 140)],
    attempts: [{ jobId: '1', attempt: 1, outcome: 'lost', cause: 'lease_lost' }],
    ...over,
  })
}
