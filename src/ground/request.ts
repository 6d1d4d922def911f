// A request on its way to SQL: checked, judged by the job's own schema, and written as one JSON object.

import { types } from 'node:util'
import { durationMs, intervalText } from './duration.ts'
import { RowlockError } from './errors.ts'
import {
  type AnyJob,
  type AnyRequest,
  checkPriority,
  checkRetry,
  checkTimeout,
  type EnqueueOptions,
  isJobDefinition,
  isMadeHere,
} from './job.ts'
import { type StorableJson, toStorableJson } from './json.ts'
import { LIMITS } from './limits.ts'
import { checkKey, checkQueue, checkTenant } from './names.ts'
import { checkOptions } from './nearest.ts'
import { isPlainObject } from './plain.ts'
import { show } from './show.ts'
import { issuesText, type Verdict, validate } from './validate.ts'

/** One job as SQL takes it. */
export class Wire {
  /** Everything but the input: the text of one JSON object. Jobs with the same one differ in their inputs alone. */
  readonly settings: string
  /** The input's JSON. */
  readonly input: string
  /** The size of the input in UTF-8: a large one is written to a table of its own. */
  readonly inputBytes: number
  /** Does it have a dedupe key? */
  readonly keyed: boolean

  constructor(settings: string, { json, bytes }: StorableJson, keyed: boolean) {
    this.settings = settings
    this.input = json
    this.inputBytes = bytes
    this.keyed = keyed
  }

  /** The text of one JSON object. */
  get job(): string {
    return `${this.settings.slice(0, -1)},"input":${this.input}}`
  }

  /** The size of that text in UTF-8. */
  get bytes(): number {
    return Buffer.byteLength(this.settings) + this.inputBytes + ',"input":'.length
  }
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
const YEAR_1 = Date.parse('0001-01-01T00:00:00Z')
/** Settings of jobs that are enqueued without options: they are the definition's, which never changes. */
const plain = new WeakMap<AnyJob, string>()

/**
 * Write a request as SQL takes it. What is stored is the JSON of what the caller passed, after the validator accepted
 * that JSON: the validator sees what the handler's will see, and its output is not stored.
 *
 * Shape: `{"kind","queue","priority","delay","available_at","expires_at","expires_in","tenant_id","dedupe_key",
 * "idempotency_key","max_attempts","backoff","timeout","metadata","input"}`, as rowlock.enqueue_many takes it: spans of
 * time are intervals (`"30s"`), instants ISO 8601; what nobody set is left out.
 * Returns at once when the job has no schema or one that answers at once, and a promise otherwise.
 * Errors: INVALID_OPTION, INPUT_NOT_STORABLE, INPUT_TOO_LARGE, INPUT_REFUSED with `issues`; thrown, or by the promise.
 */
export function toWire(request: AnyRequest): Wire | Promise<Wire> {
  if (!isJobDefinition(request?.definition)) {
    const message = `A job must be one that defineJob made, or what its with() returns; got ${show(request)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: 'job' })
  }
  const { definition, options } = request
  const settings = options === undefined ? plainSettings(definition) : settingsJson(definition, options)
  const wire = new Wire(settings, toStorableJson(request.input, INPUT), options?.dedupeKey !== undefined)
  if (definition.input === undefined) return wire
  const verdict = validate(definition.input, JSON.parse(wire.input))
  if (!(verdict instanceof Promise)) return accepted(definition.kind, verdict, wire)
  return verdict.then((late) => accepted(definition.kind, late, wire))
}

function accepted(kind: string, verdict: Verdict<unknown>, wire: Wire): Wire {
  if (verdict.issues === undefined) return wire
  const { issues, thrown } = verdict
  const message = `The input of ${show(kind)} was refused by its schema: ${issuesText(issues)}.`
  throw new RowlockError('INPUT_REFUSED', message, { issues, ...(thrown !== undefined && { cause: thrown }) })
}

function plainSettings(definition: AnyJob): string {
  let settings = plain.get(definition)
  if (settings === undefined) {
    settings = settingsJson(definition, {})
    if (isMadeHere(definition)) plain.set(definition, settings)
  }
  return settings
}

/** Everything but the input. */
function settingsJson(definition: AnyJob, options: EnqueueOptions): string {
  checkOptions(options, KNOWN, 'enqueue')
  refuseBoth(options, 'delay', 'availableAt')
  refuseBoth(options, 'expiresAt', 'expiresIn')
  const queue = options.queue === undefined ? definition.queue : checkQueue(options.queue)
  const { priority, delay, availableAt, expiresAt, expiresIn, tenantId, dedupeKey, idempotencyKey } = options
  const { maxAttempts = definition.maxAttempts, backoff = definition.backoff } = checkRetry(options.retry)
  const { timeout, metadata } = options
  const timeoutMs = timeout === undefined ? definition.timeoutMs : checkTimeout(timeout)
  return (
    `{"kind":${JSON.stringify(definition.kind)},"queue":${JSON.stringify(queue)}` +
    field('priority', priority === undefined ? definition.priority : priority, checkPriority) +
    field('delay', delay, (value) => intervalText(durationMs(value, { name: 'delay' }))) +
    field('available_at', availableAt, (value) => instant(value, 'availableAt')) +
    field('expires_at', expiresAt, (value) => instant(value, 'expiresAt')) +
    field('expires_in', expiresIn, (value) => intervalText(durationMs(value, { name: 'expiresIn' }))) +
    field('tenant_id', tenantId, checkTenant) +
    field('dedupe_key', dedupeKey, (value) => checkKey('dedupeKey', value)) +
    field('idempotency_key', idempotencyKey, (value) => checkKey('idempotencyKey', value)) +
    field('max_attempts', maxAttempts) +
    field('backoff', backoff) +
    field('timeout', timeoutMs, intervalText) +
    (metadata === undefined ? '' : `,"metadata":${metadataJson(metadata)}`) +
    '}'
  )
}

function field<T>(name: string, value: T | undefined, check?: (value: T) => unknown): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(check === undefined ? value : check(value))}`
}

function refuseBoth(options: EnqueueOptions, one: keyof EnqueueOptions, other: keyof EnqueueOptions): void {
  if (options[one] === undefined || options[other] === undefined) return
  throw new RowlockError('INVALID_OPTION', `Pass ${one} or ${other}, not both.`, { path: other })
}

/**
 * An instant in ISO 8601, from year 1, for PostgreSQL reads no year 0, to ten years ahead. This is a guard against
 * mistaken units and may go by the client's clock; what is due is decided by the database's.
 */
function instant(value: unknown, path: string): string {
  const time = types.isDate(value) ? Date.prototype.getTime.call(value) : Number.NaN
  if (time >= YEAR_1 && time <= Date.now() + LIMITS.delayMs.max) return new Date(time).toISOString()
  const message = `${path} must be a valid Date, at most ten years ahead; got ${show(value)}.`
  throw new RowlockError('INVALID_OPTION', message, { path })
}

function metadataJson(value: unknown): string {
  if (!isPlainObject(value)) {
    const message = `metadata must be a plain object; got ${show(value)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: 'metadata' })
  }
  return toStorableJson(value, METADATA).json
}
