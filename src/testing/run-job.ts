// Runs a handler as a worker would, without a database: through the schema, the JSON and the meaning of its end.

import type { ClaimedJob } from '../engine/claim.ts'
import type { Queryable } from '../engine/seam.ts'
import { RowlockError } from '../ground/errors.ts'
import type { AnyJob, InputOf, ResultOf } from '../ground/job.ts'
import { toWire } from '../ground/request.ts'
import type { Handler, RunningJob } from '../worker/handler.ts'
import { type Logger, stderrLogger } from '../worker/log.ts'
import { Run } from '../worker/run.ts'
import { failureOf, makeContext, outcomeOf, readInput } from '../worker/runner.ts'

/** What became of the job. */
export type RunJobResult<Result = unknown> =
  | { readonly outcome: 'done'; readonly result: Result }
  | {
      readonly outcome: 'failed'
      readonly cause: string
      readonly error: unknown
      readonly permanent: boolean
    }
  | { readonly outcome: 'snoozed'; readonly delayMs: number }
  | { readonly outcome: 'cancelled'; readonly reason?: string }

/** What the handler sees besides its input. */
export interface RunJobOptions {
  /** What the handler shall see of its job. Default: a first attempt, enqueued now, as its definition has it. */
  readonly job?: Partial<RunningJob>
  /** Default: one made of the job's id, as in a worker. */
  readonly idempotencyKey?: string
  /** Aborted by the test, to see what the handler does. */
  readonly signal?: AbortSignal
  /** For a transactional handler. */
  readonly tx?: Queryable
  /** Default: warnings and errors on stderr. */
  readonly logger?: Logger
}

/**
 * Run a handler inline. The input goes through JSON and the job's schema, the result through its own, so that what
 * passes here passes in a worker.
 *
 * Errors: those of enqueue, for an input that could not be enqueued. What the handler throws is returned.
 * @example
 * const { outcome } = await runJob(sendEmailHandler, { to: 'ada@example.org' })
 */
export async function runJob<J extends AnyJob>(
  handler: Handler<J>,
  input: InputOf<J>,
  options: RunJobOptions = {},
): Promise<RunJobResult<ResultOf<J>>> {
  if (handler.transactional && options.tx === undefined) {
    throw new RowlockError(
      'INVALID_OPTION',
      'a handler in a transaction needs a tx: a client, or your stand-in',
      {
        path: 'tx',
      },
    )
  }
  const { job: text } = await toWire({ definition: handler.definition, input })
  const stored = (JSON.parse(text) as { input: unknown }).input
  const run = new Run(claimedJob(handler, stored, options), handler, 2 ** 31)
  const logger = options.logger ?? stderrLogger
  let thrown: unknown
  try {
    const context = {
      ...makeContext(run, await readInput(run, stored), 'test', logger),
      ...(options.signal !== undefined && { signal: options.signal }),
      ...(options.tx !== undefined && { tx: options.tx }),
    }
    const value = await handler.run(context)
    const outcome = await outcomeOf(run, value, logger)
    if (outcome.verb === 'complete') {
      return {
        outcome: 'done',
        result: outcome.result === undefined ? undefined : JSON.parse(outcome.result),
      } as never
    }
    if (outcome.verb === 'snooze') return { outcome: 'snoozed', delayMs: outcome.after_ms }
    if (outcome.verb === 'abandon') {
      return { outcome: 'cancelled', ...(outcome.reason !== undefined && { reason: outcome.reason }) }
    }
    return failed(outcome, undefined)
  } catch (error) {
    thrown = error
    return failed(failureOf(run, error, logger), thrown)
  }
}

function failed(outcome: unknown, thrown: unknown): RunJobResult<never> {
  const { cause, error, permanent } = outcome as { cause: string; error: unknown; permanent?: boolean }
  return { outcome: 'failed', cause, error: thrown ?? error, permanent: permanent ?? false }
}

function claimedJob(
  { definition }: Handler,
  input: unknown,
  { job = {}, idempotencyKey }: RunJobOptions,
): ClaimedJob {
  return {
    id: job.id ?? '1',
    claimId: '00000000-0000-4000-8000-000000000000',
    queue: job.queue ?? definition.queue,
    kind: definition.kind,
    priority: job.priority ?? definition.priority ?? 0,
    attempt: job.attempt ?? 1,
    failures: job.failures ?? 0,
    input,
    isLarge: false,
    availableAtMs: (job.availableAt ?? new Date()).getTime(),
    enqueuedAtMs: (job.enqueuedAt ?? new Date()).getTime(),
    timeoutMs: null,
    maxAttempts: job.maxAttempts ?? definition.maxAttempts ?? null,
    tenantId: job.tenantId ?? null,
    dedupeKey: job.dedupeKey ?? null,
    idempotencyKey: idempotencyKey ?? null,
    metadata: job.metadata ?? null,
    retriedFrom: job.retriedFrom ?? null,
    losses: 0,
    expiresAt: null,
  }
}
