// What the model knows of a job, a worker and a queue: the same words as the tables, plain values, times in ms.

import type { State } from '../../src/ground/states.ts'

/** A job of the model. */
export interface ModelJob {
  readonly id: string
  state: State
  readonly queue: string
  readonly kind: string
  priority: number
  attempt: number
  failures: number
  /** Null in history, which does not keep it. */
  losses: number | null
  readonly maxAttempts: number | null
  availableAt: number
  readonly enqueuedAt: number
  claimedAt: number | null
  startedAt: number | null
  /** When it ended, or became a dead letter. */
  endedAt: number | null
  expiresAt: number | null
  workerId: string | null
  claimId: string | null
  inTransaction: boolean
  readonly dedupeKey: string | null
  readonly backoffMs: number
  cause: string | null
  actor: string | null
  reason: string | null
  readonly retriedFrom: string | null
  /** Bytes of the input's text: each job has its own, so that no input is taken for another. */
  readonly inputBytes: number
  result: unknown
}

/** A worker of the model. */
export interface ModelWorker {
  readonly id: string
  readonly startedAt: number
  beatAt: number
  expiresAt: number
}

/** Settings of a queue. */
export interface ModelQueue {
  pausedAt: number | null
  retentionDays: number
}

/** An attempt that did not end its job well. */
export interface ModelAttempt {
  readonly jobId: string
  readonly attempt: number
  readonly outcome: string
  readonly cause: string | null
  readonly workerId: string
  readonly claimedAt: number
  readonly startedAt: number | null
  readonly endedAt: number
}

/** A pair that fences. */
export interface Pair {
  readonly id: string
  readonly claim_id: string
}

/** What may be said of an attempt that ends, as SQL takes it. */
export interface Ending extends Pair {
  readonly ran_ms?: number
  readonly after_ms?: number
  readonly permanent?: boolean
  readonly cause?: string
  readonly outcome?: string
  readonly reason?: string
  readonly result?: unknown
}

export const LEASE_MS = 30_000
export const TARGET_WAIT_MS = 60_000
/** Inputs above this lie in payload. */
export const LARGE_BYTES = 4000
