// Job definitions: plain, frozen values that producers and workers share. No connection, no handler.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type Backoff, checkBackoff } from './backoff.ts'
import { type Duration, durationMs } from './duration.ts'
import { RowlockError } from './errors.ts'
import { checkInteger } from './integer.ts'
import { LIMITS } from './limits.ts'
import { checkKind, checkQueue } from './names.ts'
import { checkOptions } from './nearest.ts'
import { peek, show } from './show.ts'

const JOB: unique symbol = Symbol.for('rowlock.job') as never

/** How often and when a failed job runs again. Default: 10 attempts, exponential backoff from 5s to 1h. */
export interface RetryOptions {
  /** Unit: failures after which the job is a dead letter, 1 to 100. Default: 10. */
  readonly maxAttempts?: number | undefined
  /** Made by `exponential`, `fixed` or `list`. Default: `exponential()`, from 5s to 1h. */
  readonly backoff?: Backoff | undefined
}

/** What a job of any kind can be defined with. */
export interface JobDefaults {
  /** Default `default`. */
  readonly queue?: string | undefined
  /** How often and when a failed job runs again. Default: 10 attempts, exponential backoff from 5s to 1h. */
  readonly retry?: RetryOptions | undefined
  /** How long one attempt may take. Unit: default 15min, 10ms to 7d. */
  readonly timeout?: Duration | undefined
  /** Unit: −10 to 10, higher first, default 0. */
  readonly priority?: number | undefined
}

/** {@link JobDefaults}, and the schemas of what goes in and comes out. */
export interface JobOptions<I extends StandardSchemaV1, R extends StandardSchemaV1> extends JobDefaults {
  /** Any Standard Schema. Producers pass its input type, handlers get its output type. */
  readonly input?: I | undefined
  /** Any Standard Schema. Handlers return its input type. */
  readonly result?: R | undefined
}

/** What one enqueued job can differ in. A value of undefined is the same as none. */
export interface EnqueueOptions {
  /** Default: the definition's. */
  readonly queue?: string | undefined
  /** Unit: −10 to 10, higher first. Default: the definition's. */
  readonly priority?: number | undefined
  /** Due after this time. Not together with `availableAt`. Unit: up to ten years. */
  readonly delay?: Duration | undefined
  /** Due from this instant on; one in the past is due at once. Up to ten years ahead. */
  readonly availableAt?: Date | undefined
  /** Cancelled when it has not started by this instant. Not together with `expiresIn`. */
  readonly expiresAt?: Date | undefined
  /** Cancelled when it has not started within this time. Unit: up to ten years. */
  readonly expiresIn?: Duration | undefined
  /** Whose job it is. */
  readonly tenantId?: string | undefined
  /** At most one live job of the queue has it. */
  readonly dedupeKey?: string | undefined
  /** Given to the handler for its side effects. Default: one of its own for each job. */
  readonly idempotencyKey?: string | undefined
  /** Default: the definition's, each field on its own. */
  readonly retry?: RetryOptions | undefined
  /** Default: the definition's. */
  readonly timeout?: Duration | undefined
  /** Data about the job that is not its input: a trace, a request id. Unit: 4 kB of JSON. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** A kind of job. Made by {@link defineJob}; frozen, except for the schemas, which belong to their library. */
export interface JobDefinition<Kind extends string = string, In = unknown, Out = In, Result = unknown> {
  readonly [JOB]: true
  readonly kind: Kind
  readonly queue: string
  readonly input?: StandardSchemaV1<In, Out>
  readonly result?: StandardSchemaV1<Result, unknown>
  readonly priority?: number
  readonly maxAttempts?: number
  readonly backoff?: Backoff
  readonly timeoutMs?: number

  /** A job to be, as a plain value for `enqueueMany`. Nothing is checked until it is enqueued. */
  with(input: In, options?: EnqueueOptions): JobRequest<Kind, In, Out, Result>
}

// biome-ignore lint/suspicious/noExplicitAny: a job of whatever types; unknown would refuse those with narrower inputs
export type AnyJob = JobDefinition<string, any, any, any>

/** What to enqueue: which job, with what, how. */
export interface JobRequest<Kind extends string = string, In = unknown, Out = In, Result = unknown> {
  readonly definition: JobDefinition<Kind, In, Out, Result>
  readonly input: In
  readonly options?: EnqueueOptions
}

/** A request of any job. */
// biome-ignore lint/suspicious/noExplicitAny: as for AnyJob
export type AnyRequest = JobRequest<string, any, any, any>

/** What producers pass. */
export type InputOf<J extends AnyJob> =
  J extends JobDefinition<string, infer In, infer _, infer _> ? In : never
/** What the handler gets. */
export type OutputOf<J extends AnyJob> =
  J extends JobDefinition<string, infer _, infer Out, infer _> ? Out : never
/** What the handler returns. */
export type ResultOf<J extends AnyJob> =
  J extends JobDefinition<string, infer _, infer _, infer Result> ? Result : never

const made = new WeakSet<AnyJob>()

/**
 * Define a kind of job. Without an input schema its type is given as `defineJob<Input, Result>(kind)`, or is unknown.
 *
 * Errors: INVALID_OPTION, here and not at the first enqueue, with the option as path.
 * @example
 * const sendEmail = defineJob('send-email', {
 *   queue: 'email',
 *   input: z.object({ to: z.email() }),
 *   retry: { maxAttempts: 8, backoff: exponential({ min: '1s', max: '1h' }) },
 *   timeout: '30s',
 * })
 */
export function defineJob<const Kind extends string, I extends StandardSchemaV1, R extends StandardSchemaV1>(
  kind: Kind,
  options?: JobOptions<I, R>,
): JobDefinition<
  Kind,
  StandardSchemaV1.InferInput<I>,
  StandardSchemaV1.InferOutput<I>,
  StandardSchemaV1.InferInput<R>
>
export function defineJob<Input, Result = unknown>(
  kind: string,
  options?: JobDefaults,
): JobDefinition<string, Input, Input, Result>
export function defineJob(
  kind: string,
  options: JobOptions<StandardSchemaV1, StandardSchemaV1> = {},
): AnyJob {
  checkKind(kind)
  const known = ['queue', 'input', 'result', 'retry', 'timeout', 'priority']
  checkOptions(options, known, `defineJob(${show(kind)})`)
  const { queue, input, result, priority, timeout } = options
  const definition: AnyJob = {
    [JOB]: true,
    kind,
    queue: queue === undefined ? 'default' : checkQueue(queue),
    ...(input !== undefined && { input: checkSchema(input, 'input') }),
    ...(result !== undefined && { result: checkSchema(result, 'result') }),
    ...(priority !== undefined && { priority: checkPriority(priority) }),
    ...checkRetry(options.retry),
    ...(timeout !== undefined && { timeoutMs: checkTimeout(timeout) }),
    with(input, options) {
      return Object.freeze({ definition, input, ...(options !== undefined && { options }) })
    },
  }
  made.add(definition)
  return Object.freeze(definition)
}

/** Was this definition made here, so that it never changes? One of another copy of the package may. */
export const isMadeHere = (definition: AnyJob): boolean => made.has(definition)

/** Is this a definition made by {@link defineJob}, here or in another copy of the package? */
export function isJobDefinition(value: unknown): value is AnyJob {
  return peek(value, JOB) === true
}

/** Check a priority. Errors: INVALID_OPTION. */
export function checkPriority(value: unknown, path = 'priority'): number {
  return checkInteger(value, { name: path, min: LIMITS.priority.min, max: LIMITS.priority.max })
}

/** Check the timeout of an attempt, into ms. Errors: INVALID_OPTION. */
export function checkTimeout(value: unknown, path = 'timeout'): number {
  return durationMs(value, { name: path, min: LIMITS.timeoutMs.min, max: LIMITS.timeoutMs.max })
}

/** Check retry options; absent fields stay absent. Errors: INVALID_OPTION. */
export function checkRetry(value: unknown): { readonly maxAttempts?: number; readonly backoff?: Backoff } {
  if (value === undefined) return {}
  checkOptions(value, ['maxAttempts', 'backoff'], 'retry', 'retry.')
  const { maxAttempts, backoff } = value as RetryOptions
  const { min, max } = LIMITS.maxAttempts
  return {
    ...(maxAttempts !== undefined && {
      maxAttempts: checkInteger(maxAttempts, { name: 'retry.maxAttempts', min, max }),
    }),
    ...(backoff !== undefined && { backoff: checkBackoff(backoff, 'retry.backoff') }),
  }
}

function checkSchema(value: StandardSchemaV1, path: string): StandardSchemaV1 {
  if (typeof peek(peek(value, '~standard'), 'validate') === 'function') return value
  const message = `${path} must be a Standard Schema (Zod, Valibot, ArkType and others make them); got ${show(value)}.`
  throw new RowlockError('INVALID_OPTION', message, { path })
}
