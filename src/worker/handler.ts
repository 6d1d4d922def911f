// What users write: a handler for a kind of job, plain or inside a transaction.

import type { Queryable } from '../engine/seam.ts'
import type { Decision } from '../ground/decisions.ts'
import type { Duration } from '../ground/duration.ts'
import { RowlockError } from '../ground/errors.ts'
import { type AnyJob, isJobDefinition, type OutputOf, type ResultOf } from '../ground/job.ts'
import { checkOptions } from '../ground/nearest.ts'
import type { Logger } from './log.ts'

/** The job that a handler runs, without its input. */
export interface RunningJob {
  /** The job's id, as `enqueue` returned it: a bigint in digits. */
  readonly id: string
  /** What its definition is called. */
  readonly kind: string
  /** Where it was enqueued. */
  readonly queue: string
  /** Unit: −10 to 10, higher first. */
  readonly priority: number
  /** How often it was claimed, this time included. */
  readonly attempt: number
  /** Failures so far; at `maxAttempts` the job is a dead letter. */
  readonly failures: number
  /** As it was enqueued, the definition's included; 10 when neither had any. */
  readonly maxAttempts: number
  /** When it was enqueued, by the database's clock. */
  readonly enqueuedAt: Date
  /** From when on it was due for this attempt: after a failure or a snooze, the end of that wait. */
  readonly availableAt: Date
  /** Whose job it is; null when nobody was named. */
  readonly tenantId: string | null
  /** The key that no other live job of the queue has; null for none. */
  readonly dedupeKey: string | null
  /** As enqueued; null for none. */
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** The id of the ended job that `retry` made this one from; null for any other. */
  readonly retriedFrom: string | null
}

/** What a handler is given. */
export interface HandlerContext<Input = unknown> {
  /** The output of the job's schema for the stored input. */
  readonly input: Input
  /** What is known of the job besides its input. */
  readonly job: RunningJob
  /**
   * Aborted at the timeout, when the job is cancelled, when the lease is lost, at the end of a shutdown. Its reason is
   * a JobAborted.
   */
  readonly signal: AbortSignal
  /** For side effects: the same for every attempt of this job, different between installations. */
  readonly idempotencyKey: string
  /** The worker's logger, with the job's id, kind, queue and attempt in every line. */
  readonly log: Logger
}

/** What a transactional handler is given: its own open transaction as well. */
export interface TransactionContext<Input = unknown> extends HandlerContext<Input> {
  /** Business writes through it commit with the job's completion, or not at all. Do not commit it yourself. */
  readonly tx: Queryable
}

/** How a handler differs from the defaults. */
export interface HandlerOptions {
  /**
   * Decides here when a failed job runs again, beside the stored policy, which the reaper obeys. Undefined leaves it to
   * the policy. Bounded as a backoff is.
   */
  readonly retryIn?: ((error: unknown, job: RunningJob) => Duration | undefined) | undefined
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may end without a word
type End<J extends AnyJob> = ResultOf<J> | Decision | (unknown extends ResultOf<J> ? void : never)
type Answer<J extends AnyJob> = End<J> | Promise<End<J>>

/** A handler with the job it is for. Made by {@link handle} and {@link handleInTransaction}. */
export interface Handler<J extends AnyJob = AnyJob> {
  readonly definition: J
  readonly transactional: boolean
  // biome-ignore lint/suspicious/noExplicitAny: handlers of all jobs stand in one list
  readonly run: (context: any) => unknown
  readonly retryIn?: HandlerOptions['retryIn']
}

/**
 * A handler that runs outside any transaction: claim, commit, work, finish in a second short one.
 *
 * @example
 * handle(sendEmail, async ({ input, signal, idempotencyKey }) => {
 *   const sent = await smtp.send(input, { signal, key: idempotencyKey })
 *   return { messageId: sent.id }
 * })
 */
export function handle<J extends AnyJob>(
  job: J,
  run: (context: HandlerContext<OutputOf<J>>) => Answer<J>,
  options?: HandlerOptions,
): Handler<J> {
  return make(job, run, options, false)
}

/**
 * A handler inside a transaction: its writes through `tx` and the job's completion commit together, exactly once.
 * A decision that is returned commits with the writes; a throw rolls both back. A long one holds back vacuum.
 */
export function handleInTransaction<J extends AnyJob>(
  job: J,
  run: (context: TransactionContext<OutputOf<J>>) => Answer<J>,
  options?: HandlerOptions,
): Handler<J> {
  return make(job, run, options, true)
}

function make<J extends AnyJob>(
  definition: J,
  run: Handler['run'],
  options: HandlerOptions = {},
  transactional: boolean,
): Handler<J> {
  const refuse = (message: string, path: string) => new RowlockError('INVALID_OPTION', message, { path })
  if (!isJobDefinition(definition))
    throw refuse('handle takes a job that defineJob made, and a function', 'job')
  if (typeof run !== 'function') throw refuse(`the handler of ${definition.kind} must be a function`, 'run')
  checkOptions(options, ['retryIn'], 'handle')
  const { retryIn } = options
  if (retryIn !== undefined && typeof retryIn !== 'function')
    throw refuse('retryIn must be a function', 'retryIn')
  return Object.freeze({ definition, transactional, run, ...(retryIn !== undefined && { retryIn }) })
}

/** The handlers of a worker by kind. Errors: INVALID_OPTION, HANDLER_CONFLICT. */
export function handlersByKind(handlers: unknown): Map<string, Handler> {
  if (!Array.isArray(handlers) || handlers.length === 0) {
    throw new RowlockError('INVALID_OPTION', 'handlers must be an array with at least one handle(…)', {
      path: 'handlers',
    })
  }
  const byKind = new Map<string, Handler>()
  for (const [index, handler] of (handlers as Handler[]).entries()) {
    if (!isJobDefinition(handler?.definition) || typeof handler.run !== 'function') {
      throw new RowlockError('INVALID_OPTION', `handlers[${index}] was not made by handle(…)`, {
        path: `handlers[${index}]`,
      })
    }
    const { kind } = handler.definition
    if (byKind.has(kind)) {
      throw new RowlockError('HANDLER_CONFLICT', `two handlers for ${kind}: keep one of them`, {
        path: `handlers[${index}]`,
      })
    }
    byKind.set(kind, handler)
  }
  return byKind
}
