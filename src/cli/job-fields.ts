// A job as files and the command line write it, field by field, into a request. The fields are those that
// rowlock.enqueue_many takes; the rules are those of the client, and its words with the names of the fields.

import { RowlockError } from '../ground/errors.ts'
import { type AnyJob, type AnyRequest, defineJob, type EnqueueOptions } from '../ground/job.ts'
import { suggest } from '../ground/nearest.ts'
import { instantOf, lengthMs } from './length.ts'

/** A job's fields by their names in SQL. Null and undefined are the same as none. */
export type Fields = Readonly<Record<string, unknown>>

/** What becomes of each field: its name in the TypeScript options. */
const OPTIONS = {
  queue: 'queue',
  priority: 'priority',
  delay: 'delay',
  available_at: 'availableAt',
  expires_at: 'expiresAt',
  expires_in: 'expiresIn',
  tenant_id: 'tenantId',
  dedupe_key: 'dedupeKey',
  idempotency_key: 'idempotencyKey',
  max_attempts: 'retry.maxAttempts',
  backoff: 'retry.backoff',
  timeout: 'timeout',
  metadata: 'metadata',
} as const
const LENGTHS = new Set(['delay', 'timeout', 'expires_in'])
const INSTANTS = new Set(['available_at', 'expires_at'])
const NUMBERS = new Set(['priority', 'max_attempts'])
const JSONS = new Set(['input', 'metadata', 'backoff'])

/** Every field there is. */
export const FIELDS: readonly string[] = ['kind', 'input', ...Object.keys(OPTIONS)]

/** Of two of these only one can be given. */
const EXCLUSIVE = [
  ['delay', 'available_at'],
  ['expires_in', 'expires_at'],
] as const

const refuse = (path: string, message: string) => new RowlockError('INVALID_OPTION', message, { path })

/** The name of a field, which may be written as in TypeScript: `dedupeKey` is `dedupe_key`. Undefined for no field. */
export function fieldNamed(name: string): string | undefined {
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return FIELDS.includes(snake) ? snake : undefined
}

/** The fields of an object that somebody wrote. Errors: INVALID_OPTION. */
export function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse('', 'a job must be an object, such as {"kind": "send-email", "input": {"to": "…"}}')
  const fields: Record<string, unknown> = {}
  for (const [name, each] of Object.entries(value)) {
    const field = fieldNamed(name)
    if (field === undefined)
      throw refuse(name, `a job has no field ${JSON.stringify(name)}; ${suggest(name, FIELDS)}`)
    if (field in fields) throw refuse(name, `${field} is given twice`)
    fields[field] = each
  }
  return fields
}

/** A field that was written as text: numbers and JSON are read, all else stays. Errors: INVALID_OPTION. */
export function fieldOfText(name: string, text: string): unknown {
  if (NUMBERS.has(name)) return /^[+-]?\d{1,9}$/.test(text) ? Number(text) : text
  return JSONS.has(name) ? parseJson(name, text) : text
}

/** JSON without numbers that would lose digits. Errors: INVALID_OPTION. */
export function parseJson(name: string, text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refuse(name, `${name} is no JSON: ${(error as Error).message}`)
  }
  const number = roundedNumber(text)
  if (number === undefined) return value
  throw refuse(name, `${name} holds the number ${number}, which JavaScript would round: write it as a string`)
}

/** An integer of this JSON that a double does not hold. */
export function roundedNumber(json: string): string | undefined {
  if (!/\d{16}/.test(json)) return undefined
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
    if (/^-?\d{16,}$/.test(token) && BigInt(token) !== BigInt(Number(token))) return token
  }
  return undefined
}

/** Fields over defaults; one that excludes a default takes its place. */
export function withDefaults(fields: Fields, defaults: Fields): Fields {
  const all: Record<string, unknown> = { ...defaults }
  for (const pair of EXCLUSIVE) {
    if (pair.some((name) => isGiven(fields[name]))) for (const name of pair) delete all[name]
  }
  for (const [name, value] of Object.entries(fields)) {
    // A null input is an input.
    if (isGiven(value) || name === 'input') all[name] = value
  }
  return all
}

const isGiven = (value: unknown) => value !== undefined && value !== null

/** A request of these fields; what the client checks is checked when it is written. Errors: INVALID_OPTION. */
export function requestOf(fields: Fields): AnyRequest {
  if (!isGiven(fields.kind)) throw refuse('kind', 'kind is missing')
  if (fields.input === undefined) throw refuse('input', 'input is missing; a job without one has null')
  const options: Record<string, unknown> = {}
  const retry: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'kind' || name === 'input' || !isGiven(value)) continue
    const option = OPTIONS[name as keyof typeof OPTIONS]
    if (option.startsWith('retry.')) retry[option.slice(6)] = value
    else
      options[option] = LENGTHS.has(name)
        ? length(name, value)
        : INSTANTS.has(name)
          ? instant(name, value)
          : value
  }
  if (Object.keys(retry).length > 0) options.retry = retry
  return { definition: definitionOf(fields.kind), input: fields.input, options: options as EnqueueOptions }
}

function length(name: string, value: unknown): number {
  const ms = typeof value === 'string' ? lengthMs(value) : undefined
  if (ms !== undefined) return ms
  throw refuse(
    name,
    `${name} must be text with its unit, such as '30s' or '10 minutes'; got ${JSON.stringify(value)}`,
  )
}

function instant(name: string, value: unknown): Date {
  const at = typeof value === 'string' ? instantOf(value) : undefined
  if (at !== undefined) return at
  throw refuse(
    name,
    `${name} must be an instant with its zone, such as '2030-01-31T12:00:00Z'; got ${JSON.stringify(value)}`,
  )
}

const definitions = new Map<unknown, AnyJob>()

/** A file has few kinds and many lines. */
function definitionOf(kind: unknown): AnyJob {
  const known = definitions.get(kind)
  if (known !== undefined) return known
  if (definitions.size >= 1_000) definitions.clear()
  const made = defineJob(kind as string)
  definitions.set(kind, made)
  return made
}

/** What only a program can write, as it is written in a file or on the command line. */
const WRITTEN = [
  [
    'must be made by exponential(), fixed() or list()',
    'must be JSON such as {"type": "fixed", "delay_ms": 5000}, of the type exponential, fixed or list',
  ],
] as const

/** What an error says, with each option called as `nameOf` calls its field. */
export function inFields(message: string, nameOf: (field: string) => string = (field) => field): string {
  let said = message
  for (const [made, written] of WRITTEN) said = said.replace(made, written)
  for (const [field, option] of Object.entries(OPTIONS)) {
    const written = option.replace('.', '\\.')
    const name = nameOf(field)
    if (option !== name) said = said.replace(new RegExp(`(?<![\\w.'"-])${written}(?![\\w'"])`, 'g'), name)
    if (field !== name && field !== option)
      said = said.replace(new RegExp(`(?<![\\w.'"-])${field}(?![\\w'"])`, 'g'), name)
  }
  return said
}
