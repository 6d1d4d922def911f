// Runs one claimed job: reads its input, calls the handler, and says what became of it.

import type { Outcome } from '../engine/finish.ts'
import { readPayload } from '../engine/read-payload.ts'
import { isDecision, isPermanent } from '../ground/decisions.ts'
import { durationMs } from '../ground/duration.ts'
import { toStorableJson } from '../ground/json.ts'
import { LIMITS } from '../ground/limits.ts'
import { describeThrown } from '../ground/thrown.ts'
import { issuesText, validate } from '../ground/validate.ts'
import type { HandlerContext, RunningJob } from './handler.ts'
import { errorFields, type Logger, withFields } from './log.ts'
import { through } from './middleware.ts'
import { persist } from './persist.ts'
import type { Run } from './run.ts'
import type { RunnerOptions } from './runner-options.ts'
import { runInTransaction } from './transaction.ts'

const RESULT = { maxBytes: LIMITS.resultBytes.max, what: 'result' } as const

/** What the handler's end means; null: nothing may be said, another owner has the job. */
export async function runJob(run: Run, options: RunnerOptions): Promise<Outcome | null> {
  const { job, handler } = run
  try {
    const { database, timeoutMs, installation, logger } = options
    const raw = job.isLarge ? await persist(run, () => readPayload(database, job.id, timeoutMs)) : job.input
    const input = handler.definition.input === undefined ? raw : await readInput(run, raw)
    if (run.abortReason !== undefined) throw run.abortReason
    const context = makeContext(run, input, installation(), logger)
    if (handler.transactional) {
      return await runInTransaction(run, context, options, (value) => outcomeOf(run, value, logger))
    }
    const value = await through(options.middleware, context, handler.run)
    const outcome = outcomeOf(run, value, logger)
    return outcome instanceof Promise ? await outcome : outcome
  } catch (error) {
    return failureOf(run, error, options.logger)
  }
}

/** The input as its schema reads it today. What it refuses no attempt can mend. */
export async function readInput({ handler }: Run, raw: unknown): Promise<unknown> {
  const schema = handler.definition.input
  if (schema === undefined) return raw
  const verdict = await validate(schema, raw)
  if (verdict.issues === undefined) return verdict.value
  // A schema that breaks has not judged the input: the next attempt may find it well.
  if ('thrown' in verdict) throw verdict.thrown
  throw new Invalid('InputInvalid', issuesText(verdict.issues))
}

/** Told apart by identity: what handlers throw may be a proxy that answers no question. */
const invalid = new WeakSet<object>()

class Invalid extends Error {
  readonly code = 'validation'

  constructor(name: string, message: string) {
    super(message)
    this.name = name
    invalid.add(this)
  }
}

/** What the handler is given, without a transaction. */
export function makeContext(run: Run, input: unknown, installation: string, logger: Logger): HandlerContext {
  const { job } = run
  // Made when a handler asks for them: a short one often does not.
  let asked: RunningJob | undefined
  let log: Logger | undefined
  return {
    input,
    get job() {
      asked ??= publicJob(run)
      return asked
    },
    get signal() {
      return run.signal
    },
    idempotencyKey: job.idempotencyKey ?? `${installation}:${job.id}`,
    get log() {
      log ??= withFields(logger, { jobId: job.id, kind: job.kind, queue: job.queue, attempt: job.attempt })
      return log
    },
  }
}

function publicJob({ job }: Run): RunningJob {
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    priority: job.priority,
    attempt: job.attempt,
    failures: job.failures,
    maxAttempts: job.maxAttempts ?? LIMITS.maxAttempts.default,
    enqueuedAt: new Date(job.enqueuedAtMs),
    availableAt: new Date(job.availableAtMs),
    tenantId: job.tenantId,
    dedupeKey: job.dedupeKey,
    metadata: job.metadata,
    retriedFrom: job.retriedFrom,
  }
}

const ended = ({ job, ranMs }: Run) => ({
  id: job.id,
  claim_id: job.claimId,
  attempt: job.attempt,
  queue: job.queue,
  ran_ms: Math.round(ranMs),
})

/**
 * What a handler's value means: a decision, or the end of the job with a result. Throws when the schema refuses the
 * result: a person must look, for another attempt would do the work again.
 */
export function outcomeOf(run: Run, value: unknown, logger: Logger): Outcome | Promise<Outcome> {
  if (isDecision(value)) {
    if (value.decision === 'snooze') return { verb: 'snooze', ...ended(run), after_ms: value.delayMs }
    return { verb: 'abandon', ...ended(run), ...(value.reason !== undefined && { reason: value.reason }) }
  }
  const schema = run.handler.definition.result
  if (schema === undefined) {
    return value === undefined ? { verb: 'complete', ...ended(run) } : completed(run, value, logger)
  }
  const verdict = validate(schema, value)
  const judge = (said: Awaited<typeof verdict>): Outcome => {
    if (said.issues === undefined) {
      return value === undefined ? { verb: 'complete', ...ended(run) } : completed(run, value, logger)
    }
    throw new Invalid('ResultInvalid', issuesText(said.issues))
  }
  return verdict instanceof Promise ? verdict.then(judge) : judge(verdict)
}

/** A result that cannot be stored does not undo the work: the job is done, and says in its result what happened. */
function completed(run: Run, value: unknown, logger: Logger): Outcome {
  try {
    return { verb: 'complete', ...ended(run), result: toStorableJson(value, RESULT).json }
  } catch (error) {
    logger.warn(
      { jobId: run.job.id, kind: run.job.kind, ...errorFields(error) },
      'the result could not be stored',
    )
    return {
      verb: 'complete',
      ...ended(run),
      result: JSON.stringify({ unstorable: (error as Error).message }),
    }
  }
}

/** What a throw means. Why the signal was given counts for more than what was thrown because of it. */
export function failureOf(run: Run, thrown: unknown, logger: Logger): Outcome | null {
  const aborted = run.abortCause
  if (aborted === 'lease_lost') return null
  const permanent = isPermanent(thrown) || invalid.has(thrown as object)
  if (aborted === 'shutdown' && !permanent) return { verb: 'hand_back', ...ended(run), cause: 'shutdown' }
  const { cause, error } = describeThrown(thrown)
  const isTimeout = aborted === 'timeout'
  const afterMs = permanent ? undefined : decidedDelay(run, thrown, logger)
  return {
    verb: 'fail',
    ...ended(run),
    outcome: isTimeout ? 'timed_out' : 'failed',
    cause: isTimeout ? 'timeout' : aborted === 'cancelled' ? 'cancelled' : cause,
    error,
    ...(permanent && { permanent }),
    ...(afterMs !== undefined && { after_ms: afterMs }),
  }
}

/** The handler's own word on when to retry, if it has one and it makes sense. */
function decidedDelay(run: Run, thrown: unknown, logger: Logger): number | undefined {
  const { retryIn } = run.handler
  if (retryIn === undefined) return undefined
  try {
    const delay = retryIn(thrown, publicJob(run))
    if (delay === undefined) return undefined
    return durationMs(delay, { name: 'retryIn', min: 0, max: LIMITS.backoffMaxMs.max })
  } catch (error) {
    logger.warn(
      { jobId: run.job.id, kind: run.job.kind, ...errorFields(error) },
      'retryIn failed: the stored backoff holds',
    )
    return undefined
  }
}

/** The handler ignored its signal: what is recorded in its stead, so that the job goes on without it. */
export function deafOutcome(run: Run): Outcome | null {
  if (run.abortCause === 'lease_lost') return null
  if (run.abortCause === 'shutdown') return { verb: 'hand_back', ...ended(run), cause: 'shutdown' }
  const seconds = Math.round(run.ranMs / 1000)
  return {
    verb: 'fail',
    ...ended(run),
    outcome: 'timed_out',
    cause: 'timeout',
    error: { name: 'HandlerStuck', message: `the handler ignored its signal; it had run for ${seconds} s` },
  }
}
