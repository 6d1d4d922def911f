// A request on its way to SQL: checked, judged by the job's own schema, and written as one JSON object.

import { durationMs } from './duration.ts'
import { RowlockError } from './errors.ts'
import {
  type AnyRequest,
  checkPriority,
  checkRetry,
  checkTimeout,
  type EnqueueOptions,
  isJobDefinition,
} from './job.ts'
import { toStorableJson } from './json.ts'
import { LIMITS } from './limits.ts'
import { checkKey, checkQueue, checkTenant } from './names.ts'
import { checkOptions } from './nearest.ts'
import { isPlainObject } from './plain.ts'
import { show } from './show.ts'
import { issuesText, type Verdict, validate } from './validate.ts'

/** One job as SQL takes it: the text of one JSON object, and its size in UTF-8. */
export interface Wire {
  readonly job: string
  readonly bytes: number
}

const KNOWN: readonly (keyof EnqueueOptions)[] = [
  'queue',
  'priority',
  'delay',
  'availableAt',
  'expiresAt',
  'expiresIn',
  'tenantId',
  'dedupeKey',
  'idempotencyKey',
  'retry',
  'timeout',
  'metadata',
]
const INPUT = { maxBytes: LIMITS.inputBytes.max, what: 'input' } as const
const METADATA = { maxBytes: LIMITS.metadataBytes.max, what: 'metadata' } as const
const NONE: EnqueueOptions = Object.freeze({})

/**
 * Write a request as SQL takes it. What is stored is the JSON of what the caller passed, after the validator accepted
 * that JSON: the validator sees what the handler's will see, and its output is not stored.
 *
 * Shape: `{"kind","queue","input","priority","delay_ms","available_at","expires_at","expires_in_ms","tenant_id",
 * "dedupe_key","idempotency_key","max_attempts","backoff","timeout_ms","metadata"}`; what nobody set is left out.
 * Returns at once when the job has no schema or one that answers at once, and a promise otherwise.
 * Errors: INVALID_OPTION, INPUT_NOT_STORABLE, INPUT_TOO_LARGE, INPUT_REFUSED with `issues`; thrown, or by the promise.
 */
export function toWire(request: AnyRequest): Wire | Promise<Wire> {
  if (!isJobDefinition(request?.definition)) {
    const message = `A job must be one that defineJob made, or what its with() returns; got ${show(request)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: 'job' })
  }
  const { definition, input, options = NONE } = request
  checkOptions(options, KNOWN, 'enqueue')
  const queue = options.queue === undefined ? definition.queue : checkQueue(options.queue)
  const head = `{"kind":${JSON.stringify(definition.kind)},"queue":${JSON.stringify(queue)},"input":`
  const tail = `${settings(request)}}`
  const { json, bytes } = toStorableJson(input, INPUT)
  const wire = { job: head + json + tail, bytes: bytes + Buffer.byteLength(head) + Buffer.byteLength(tail) }
  if (definition.input === undefined) return wire
  const verdict = validate(definition.input, JSON.parse(json))
  if (!(verdict instanceof Promise)) return accepted(definition.kind, verdict, wire)
  return verdict.then((late) => accepted(definition.kind, late, wire))
}

function accepted(kind: string, verdict: Verdict<unknown>, wire: Wire): Wire {
  if (verdict.issues === undefined) return wire
  const { issues, thrown } = verdict
  const message = `The input of ${show(kind)} was refused by its schema: ${issuesText(issues)}.`
  throw new RowlockError('INPUT_REFUSED', message, { issues, ...(thrown !== undefined && { cause: thrown }) })
}

/** Everything but kind, queue and input, each field with its comma in front. */
function settings({ definition, options = NONE }: AnyRequest): string {
  refuseBoth(options, 'delay', 'availableAt')
  refuseBoth(options, 'expiresAt', 'expiresIn')
  const { priority, delay, availableAt, expiresAt, expiresIn, tenantId, dedupeKey, idempotencyKey } = options
  const { maxAttempts = definition.maxAttempts, backoff = definition.backoff } = checkRetry(options.retry)
  const { timeout, metadata } = options
  return (
    field('priority', priority === undefined ? definition.priority : checkPriority(priority)) +
    field('delay_ms', delay === undefined ? delay : durationMs(delay, { name: 'delay' })) +
    field('available_at', availableAt === undefined ? availableAt : instant(availableAt, 'availableAt')) +
    field('expires_at', expiresAt === undefined ? expiresAt : instant(expiresAt, 'expiresAt')) +
    field(
      'expires_in_ms',
      expiresIn === undefined ? expiresIn : durationMs(expiresIn, { name: 'expiresIn' }),
    ) +
    field('tenant_id', tenantId === undefined ? tenantId : checkTenant(tenantId)) +
    field('dedupe_key', dedupeKey === undefined ? dedupeKey : checkKey('dedupeKey', dedupeKey)) +
    field(
      'idempotency_key',
      idempotencyKey === undefined ? idempotencyKey : checkKey('idempotencyKey', idempotencyKey),
    ) +
    field('max_attempts', maxAttempts) +
    field('backoff', backoff) +
    field('timeout_ms', timeout === undefined ? definition.timeoutMs : checkTimeout(timeout)) +
    (metadata === undefined ? '' : `,"metadata":${metadataJson(metadata)}`)
  )
}

function field(name: string, value: unknown): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`
}

function refuseBoth(options: EnqueueOptions, one: keyof EnqueueOptions, other: keyof EnqueueOptions): void {
  if (options[one] === undefined || options[other] === undefined) return
  throw new RowlockError('INVALID_OPTION', `Pass ${one} or ${other}, not both.`, { path: other })
}

/** An instant that both sides can write: PostgreSQL does not read the years that ISO 8601 writes with a sign. */
function instant(value: unknown, path: string): string {
  const time = value instanceof Date ? value.getTime() : Number.NaN
  const year = new Date(time).getUTCFullYear()
  if (year >= 1 && year <= 9999) return new Date(time).toISOString()
  const message = `${path} must be a valid Date of the years 1 to 9999; got ${show(value)}.`
  throw new RowlockError('INVALID_OPTION', message, { path })
}

function metadataJson(value: unknown): string {
  if (!isPlainObject(value)) {
    const message = `metadata must be a plain object; got ${show(value)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: 'metadata' })
  }
  return toStorableJson(value, METADATA).json
}
