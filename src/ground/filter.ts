// Which jobs, and which changes: filters, checked before anything is sent, and written as SQL takes them.
import { types } from 'node:util'
import { RowlockError } from './errors.ts'
import { checkId } from './id.ts'
import { toStorableJson } from './json.ts'
import { LIMITS } from './limits.ts'
import { checkOptions, suggest } from './nearest.ts'
import { isPlainObject } from './plain.ts'
import { show } from './show.ts'
import { describeBytes } from './size.ts'
import { STATES, type State } from './states.ts'
import { isStorableText } from './text.ts'

/** A state to look for; `scheduled` is queued for later, `due` is queued or retryable and may start now. */
export type FilterState = State | 'scheduled' | 'due'

/** Every state a filter can name. */
export const FILTER_STATES: readonly FilterState[] = [...STATES, 'scheduled', 'due']

/** Which jobs. All conditions that are given must hold; one that is undefined is not given. */
export interface JobFilter {
  /** One of these states. */
  readonly state?: FilterState | readonly FilterState[] | undefined
  readonly queue?: string | readonly string[] | undefined
  readonly kind?: string | readonly string[] | undefined
  readonly tenantId?: string | readonly string[] | undefined
  /** Why it is retryable, failed or a dead letter. */
  readonly cause?: string | readonly string[] | undefined
  readonly dedupeKey?: string | undefined
  /** As it was given when the job was enqueued. */
  readonly idempotencyKey?: string | undefined
  /** A dead letter's error, as its group shows it: the first line, each run of digits a `#`. */
  readonly error?: string | undefined
  /** The job's metadata has all of this in it, at any depth. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** The worker that runs it, or ran it last. */
  readonly workerId?: string | undefined
  readonly retriedFrom?: string | undefined
  /** Spans of time are half-open: [since, until). A text is ISO 8601; without an offset it is UTC. */
  readonly enqueuedSince?: Date | string | undefined
  readonly enqueuedUntil?: Date | string | undefined
  readonly availableSince?: Date | string | undefined
  readonly availableUntil?: Date | string | undefined
  /** When it was finished, or became a dead letter. */
  readonly endedSince?: Date | string | undefined
  readonly endedUntil?: Date | string | undefined
  /** Restricts nothing, and says that this is meant: a change of many jobs asks for it. */
  readonly all?: true | undefined
}

/** Which changes. All conditions that are given must hold. */
export interface ChangeFilter {
  readonly jobId?: string | undefined
  readonly queue?: string | undefined
  /** What was done, as the SQL verb is called: `cancel`, `run_now`, `pause`. */
  readonly verb?: string | undefined
  readonly actor?: string | undefined
  readonly since?: Date | string | undefined
  readonly until?: Date | string | undefined
}

type Check = (value: unknown, path: string) => unknown

const text =
  (max: number): Check =>
  (value, path) => {
    if (typeof value !== 'string') return refuse(path, `must be a string; got ${show(value)}`)
    const bytes = value.length > max ? value.length : Buffer.byteLength(value)
    if (bytes < 1) return refuse(path, 'must not be empty')
    if (bytes > max) return refuse(path, `must be at most ${describeBytes(max)} in UTF-8; got ${show(value)}`)
    if (!isStorableText(value))
      return refuse(path, `must have no NUL and no lone surrogate; got ${show(value)}`)
    return value
  }

const oneOrMore =
  (check: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) return check(value, path)
    const { max } = LIMITS.filterEntries
    if (value.length < 1 || value.length > max) {
      return refuse(path, `must have 1 to ${max} entries; got ${value.length}`)
    }
    return Array.from(value, (each) => check(each, path))
  }

const state: Check = (value, path) => {
  if (FILTER_STATES.includes(value as FilterState)) return value
  const known = typeof value === 'string' ? `; ${suggest(value, FILTER_STATES)}` : ''
  return refuse(path, `must be one of ${FILTER_STATES.join(', ')}; got ${show(value)}${known}`)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const worker: Check = (value, path) =>
  typeof value === 'string' && UUID.test(value)
    ? value
    : refuse(path, `must be the id of a worker, a UUID; got ${show(value)}`)

const DAY_AND_TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i
const YEAR_1 = Date.parse('0001-01-01T00:00:00Z')
const YEAR_10000 = Date.parse('9999-12-31T23:59:59.999Z')

/** A text goes as it is: PostgreSQL has microseconds, and Date would cut them. */
const instant: Check = (value, path) => {
  const time = types.isDate(value)
    ? Date.prototype.getTime.call(value)
    : typeof value === 'string' && DAY_AND_TIME.test(value)
      ? Date.parse(value)
      : Number.NaN
  if (time >= YEAR_1 && time <= YEAR_10000) return types.isDate(value) ? new Date(time).toISOString() : value
  return refuse(path, `must be a Date or an instant in ISO 8601; got ${show(value)}`)
}

const metadata: Check = (value, path) => {
  if (!isPlainObject(value)) return refuse(path, `must be a plain object; got ${show(value)}`)
  return JSON.parse(toStorableJson(value, { maxBytes: LIMITS.metadataBytes.max, what: 'metadata' }).json)
}

const all: Check = (value, path) => (value === true ? true : refuse(path, 'can only be true'))

const name = text(LIMITS.nameBytes.max)
const key = text(LIMITS.keyBytes.max)
const OF_JOBS: Readonly<Record<keyof JobFilter, Check>> = {
  state: oneOrMore(state),
  queue: oneOrMore(name),
  kind: oneOrMore(name),
  tenantId: oneOrMore(text(LIMITS.tenantBytes.max)),
  cause: oneOrMore(text(LIMITS.causeBytes.max)),
  dedupeKey: key,
  idempotencyKey: key,
  error: text(LIMITS.errorLineBytes.max),
  metadata,
  workerId: worker,
  retriedFrom: checkId,
  enqueuedSince: instant,
  enqueuedUntil: instant,
  availableSince: instant,
  availableUntil: instant,
  endedSince: instant,
  endedUntil: instant,
  all,
}
const OF_CHANGES: Readonly<Record<keyof ChangeFilter, Check>> = {
  jobId: checkId,
  queue: name,
  verb: name,
  actor: text(LIMITS.reasonBytes.max),
  since: instant,
  until: instant,
}

/** The names a filter of jobs can have, as TypeScript has them. */
export const FILTER_NAMES = Object.keys(OF_JOBS) as readonly (keyof JobFilter)[]

/**
 * Write a filter of jobs as SQL takes it.
 *
 * Shape: the text of a JSON object; names in snake_case, instants in ISO 8601.
 * Errors: INVALID_OPTION, with the name in this filter as path.
 */
export function filterText(filter: JobFilter): string {
  const wire = write(filter, OF_JOBS, 'a filter')
  if (wire.error !== undefined && wire.state !== undefined && ![wire.state].flat().includes('dead_letter')) {
    refuse('error', 'is of dead letters: leave state out, or have dead_letter in it')
  }
  for (const what of ['enqueued', 'available', 'ended']) inOrder(filter, `${what}Since`, `${what}Until`)
  return JSON.stringify(wire)
}

/** Write a filter of changes as SQL takes it. Errors: INVALID_OPTION. */
export function changeFilterText(filter: ChangeFilter): string {
  const wire = write(filter, OF_CHANGES, 'a filter of changes')
  inOrder(filter, 'since', 'until')
  return JSON.stringify(wire)
}

function write(
  filter: object,
  checks: Readonly<Record<string, Check>>,
  where: string,
): Record<string, unknown> {
  checkOptions(filter, Object.keys(checks), where)
  return Object.fromEntries(
    Object.entries(filter)
      .filter(([, value]) => value !== undefined)
      .map(([path, value]) => [
        path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        checks[path]!(value, path),
      ]),
  )
}

/** Judged here as far as Date can; microseconds are left to SQL. */
function inOrder(filter: object, since: string, until: string): void {
  const [from, to] = [since, until].map((path) => (filter as Record<string, Date | string | undefined>)[path])
  if (from === undefined || to === undefined) return
  if (new Date(utc(from)) > new Date(utc(to))) refuse(until, `must be after ${since}`)
}

/** JavaScript takes a day and time without an offset for local time. */
const utc = (value: Date | string): Date | string =>
  typeof value === 'string' && /[T ]\d\d:\d\d(?:[:.\d]*)$/i.test(value) ? `${value}Z` : value

function refuse(path: string, what: string): never {
  throw new RowlockError('INVALID_OPTION', `${path} ${what}.`, { path })
}
