// What happened, as the checker takes it: plain data, whoever made it. Reads nothing, judges nothing.

import type { Phase, State } from '../src/ground/states.ts'

/** One change of a job's row. Instants: ms since 1970 by the server's clock. */
export interface AuditRow {
  readonly phase: Phase
  readonly op: 'insert' | 'update' | 'delete'
  readonly jobId: string
  readonly state: State
  readonly attempt: number
  readonly failures: number
  readonly maxAttempts: number
  readonly claimId: string | null
  readonly workerId: string | null
  readonly claimedAt: number | null
  readonly inTransaction: boolean
  /** Of what leaves `running`: was the session of its handler's transaction there? Null: there was none, or unknown. */
  readonly sessionLives?: boolean | null
  readonly queue: string
  readonly kind: string
  readonly dedupeKey: string | null
  readonly txid: string
  readonly at: number
}

/** One change of a worker's lease; `at` is when others could see it. */
export interface LeaseRow {
  readonly op: 'insert' | 'update' | 'delete'
  readonly workerId: string
  readonly pid: number | null
  readonly expiresAt: number
  readonly at: number
}

/** How a handler's call ended, by its own word. */
export type How = 'returned' | 'threw' | 'aborted' | 'snoozed'

/** What a handler wrote down. */
export interface LedgerRow {
  readonly jobId: string
  readonly attempt: number
  readonly key: string
  readonly pid: number
  readonly run: number
  readonly phase: 'start' | 'effect' | 'end'
  readonly how: How | null
  readonly at: number
}

/** A call whose answer never came is unknown: neither done nor failed. */
export type Answer = 'ok' | 'failed' | 'unknown'

/** One job that a producer asked for. */
export interface Call {
  /** What the job's input names; each is used once. */
  readonly ref: string
  readonly answer: Answer
  /** Of an answer that came: the job that stands for this call. */
  readonly id?: string
  /** False: a live job had the dedupe key already. */
  readonly created?: boolean
  /** A business row was written in the same transaction. */
  readonly inTransaction: boolean
}

/** What an operator was answered. */
export interface Operation {
  readonly verb: 'cancel' | 'run_now' | 'prioritize' | 'redrive' | 'discard' | 'retry'
  readonly id: string
  readonly answer: string
}

/** A time in which nothing of a queue may be claimed: from the answer to a pause until somebody asks to resume. */
export interface Pause {
  readonly queue: string
  readonly from: number
  readonly to: number
}

/** A job as it is when everything is over. */
export interface EndJob {
  readonly id: string
  readonly state: State
  readonly ref: string | null
  readonly kind: string
  readonly queue: string
  readonly dedupeKey: string | null
  readonly retriedFrom: string | null
}

/** How an attempt ended that did not end its job well. */
export interface EndAttempt {
  readonly jobId: string
  readonly attempt: number
  readonly outcome: string
  readonly cause: string | null
}

/** What is left after the drain, when every worker has been stopped. */
export interface Rest {
  /** Jobs that still waited or ran when the bound was reached. */
  readonly unfinished: number
  /** Sessions of workers and producers that are still there. */
  readonly sessions: number
  readonly idleInTransaction: number
  readonly advisoryLocks: number
  readonly workers: number
  readonly cancelRequests: number
  readonly deadlocks: number
}

/** Everything the checker judges by. */
export interface History {
  readonly audit: readonly AuditRow[]
  readonly leases: readonly LeaseRow[]
  readonly ledger: readonly LedgerRow[]
  readonly calls: readonly Call[]
  readonly operations: readonly Operation[]
  readonly pauses?: readonly Pause[]
  /** What was being broken, and when. */
  readonly acts?: readonly { readonly fault: string; readonly from: number; readonly to: number }[]
  /** What a killed worker ran starts again within this. Absent: that is not judged. Unit: ms. */
  readonly secondStartMs?: number
  /** Processes that we killed, and when. */
  readonly deaths: readonly { readonly pid: number; readonly at: number }[]
  /** What processes did that nobody asked for: ends, unhandled rejections, warnings. */
  readonly mishaps: readonly string[]
  readonly jobs: readonly EndJob[]
  readonly attempts: readonly EndAttempt[]
  /** Dedupe keys that are held, and by which job. */
  readonly keys: readonly { readonly queue: string; readonly key: string; readonly jobId: string }[]
  /** References whose business row is there. */
  readonly asked: readonly string[]
  /** Jobs whose transactional handler's row is there, once for each row. */
  readonly booked: readonly string[]
  /** Handlers of a queue that may run at once in one process. */
  readonly concurrency: Readonly<Record<string, number>>
  /** Kinds that ignore their signal: they may go on beside their successor. */
  readonly deaf: readonly string[]
  /** Kinds whose handlers run in a transaction: only what they commit counts. */
  readonly transactional: readonly string[]
  readonly rest: Rest
}

/** What should not have been. */
export interface Violation {
  /** O1 to O7, or `states` for the table of transitions. */
  readonly oracle: 'O1' | 'O2' | 'O3' | 'O4' | 'O5' | 'O6' | 'O7' | 'states'
  /** Under which figure of the account it is counted. */
  readonly figure: Figure
  readonly jobId?: string
  readonly says: string
}

/** The bad figures of the account: each is 0 when all is well. */
export const FIGURES = [
  'lost',
  'double_owner',
  'stuck',
  'late_starts',
  'limits_broken',
  'unexpected_exits',
  'illegal_transitions',
  'phantoms',
  'effects_broken',
  'answers_broken',
  'left_open',
  'deadlocks',
] as const
/** One of them. */
export type Figure = (typeof FIGURES)[number]
