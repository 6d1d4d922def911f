// What a handler says besides a result or an error: run me later, stop me for good, do not retry this error.
// The marks are global symbols, so that two copies of the package in one process understand each other.
import { type Duration, durationMs } from './duration.ts'
import { RowlockError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { isError, peek, show } from './show.ts'
import { storableText } from './text.ts'

const DECISION: unique symbol = Symbol.for('rowlock.decision') as never
const PERMANENT: unique symbol = Symbol.for('rowlock.permanent') as never

/** Run this job again later; no failure. */
export interface Snooze {
  readonly [DECISION]: true
  readonly decision: 'snooze'
  readonly delayMs: number
}

/** Stop this job for good. */
export interface Cancel {
  readonly [DECISION]: true
  readonly decision: 'cancel'
  readonly reason?: string
}

/** What a handler may return instead of a result. */
export type Decision = Snooze | Cancel

/**
 * Return this from a handler to run the job again later. It is no failure, and the job's failures stay as they are.
 *
 * Unit: 0 to ten years.
 * Errors: INVALID_OPTION.
 * @example
 * if (sent.busy) return snooze('5m')
 */
export function snooze(delay: Duration): Snooze {
  const { min, max } = LIMITS.snoozeMs
  const delayMs = durationMs(delay, { name: 'delay', min, max })
  return Object.freeze({ [DECISION]: true as const, decision: 'snooze', delayMs })
}

/**
 * Return this from a handler to stop the job for good: it ends as cancelled.
 *
 * Unit: the reason is kept up to 1,000 bytes; a longer one is cut, for the decision stands all the same.
 * Errors: INVALID_OPTION, when the reason is no string.
 */
export function cancel(reason?: string): Cancel {
  if (reason === undefined) return Object.freeze({ [DECISION]: true as const, decision: 'cancel' })
  if (typeof reason !== 'string') {
    const message = `reason must be a string; got ${show(reason)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: 'reason' })
  }
  const kept = storableText(reason, LIMITS.reasonBytes.max)
  return Object.freeze({ [DECISION]: true as const, decision: 'cancel', reason: kept })
}

/** Is this what {@link snooze} or {@link cancel} returned, here or in another copy of the package? */
export function isDecision(value: unknown): value is Decision {
  return typeof value === 'object' && value !== null && peek(value, DECISION) === true
}

/** An error that is not to be retried. `inner` is what was passed to {@link permanent}. */
export class PermanentError extends Error {
  readonly [PERMANENT] = true
  readonly inner: unknown

  constructor(inner: unknown) {
    const message = isError(inner) ? peek(inner, 'message') : inner
    super(typeof message === 'string' ? message : show(message), { cause: inner })
    this.name = 'PermanentError'
    this.inner = inner
  }
}

/**
 * Throw this from a handler when another attempt would change nothing: the job ends as failed at once.
 *
 * @example
 * if (sent.refused) throw permanent(new Error('no such mailbox'))
 */
export function permanent(error: unknown): PermanentError {
  return isPermanent(error) ? error : new PermanentError(error)
}

/** Was this very error marked by {@link permanent}? An error that only has a permanent one as its cause is not. */
export function isPermanent(error: unknown): error is PermanentError {
  return typeof error === 'object' && error !== null && peek(error, PERMANENT) === true
}
