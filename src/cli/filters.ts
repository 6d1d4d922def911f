// The flags that a filter has on the command line, the same for every command that takes one.

import type { Command } from 'commander'
import { Option } from 'commander'
import { FILTER_STATES } from '../ground/filter.ts'
import { type BulkVerb, bulkStatesOf } from '../ground/states.ts'
import type { JobFilter } from '../index.ts'
import { quotedWords } from './shell.ts'
import { id, object, oneOrMore, when, word } from './values.ts'

const text = (value: string): string => value
const states = (value: string) => value.split(',').map((each) => word(each.trim(), FILTER_STATES))

/** One row per flag: what it reads, and what the help says. */
const FLAGS = {
  state: ['<state>', `in this state; several with commas: ${FILTER_STATES.join(', ')}`, states],
  queue: ['<name>', 'of this queue; may be repeated', oneOrMore(text)],
  kind: ['<name>', 'of this kind; may be repeated', oneOrMore(text)],
  'tenant-id': ['<id>', 'of this tenant; may be repeated', oneOrMore(text)],
  cause: ['<word>', 'whose last attempt failed for this; may be repeated', oneOrMore(text)],
  error: ['<line>', 'dead letters whose error begins with this line, as `dead-letters` shows it', text],
  'dedupe-key': ['<key>', 'with this dedupe key', text],
  'idempotency-key': ['<key>', 'with this idempotency key', text],
  metadata: ['<json>', `whose metadata contains this, as '{"order":42}'`, object],
  'worker-id': ['<uuid>', 'that this worker runs, or ran last', text],
  'retried-from': ['<id>', 'that are retries of this job', id],
  'enqueued-since': ['<when>', 'enqueued at or after: an instant in ISO form, or an age such as 2h', when],
  'enqueued-until': ['<when>', 'enqueued before', when],
  'available-since': ['<when>', 'due at or after; +2h is two hours from now', when],
  'available-until': ['<when>', 'due before', when],
  'ended-since': ['<when>', 'ended at or after', when],
  'ended-until': ['<when>', 'ended before', when],
} as const satisfies Record<string, readonly [string, string, (value: string, before?: never) => unknown]>

export type FilterFlag = keyof typeof FLAGS
export const FILTER_FLAGS = Object.keys(FLAGS) as readonly FilterFlag[]

/** Add the flags of a filter to a command; `without` those that it has a meaning of its own for. */
export function withFilter(command: Command, without: readonly FilterFlag[] = []): Command {
  for (const name of FILTER_FLAGS) {
    if (without.includes(name)) continue
    const [value, says, read] = FLAGS[name]
    const option = new Option(`--${name} ${value}`, says).argParser(
      read as (value: string, before: unknown) => unknown,
    )
    if (name === 'state') option.argChoices = [...FILTER_STATES]
    command.addOption(option.helpGroup('Which jobs:'))
  }
  return command
}

/** The filter that the options of a call say; empty when none was given. */
export function filterOf(options: Readonly<Record<string, unknown>>): JobFilter {
  const names = FILTER_FLAGS.map(camelCase)
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  )
}

/** A filter as the flags that say it, to be typed. */
export function flagsOf(filter: JobFilter): string[] {
  return FILTER_FLAGS.flatMap((name) => {
    const value = (filter as Readonly<Record<string, unknown>>)[camelCase(name)]
    if (value === undefined) return []
    const values = Array.isArray(value) ? (name === 'state' ? [value.join(',')] : value) : [value]
    return values.flatMap((each) => [`--${name}`, written(each)])
  })
}

/** Which jobs a bulk change is for, in one line: its filter as flags, without the states that are the verb's own. */
export function filterLine(verb: BulkVerb, filter: JobFilter): string {
  const own = bulkStatesOf(verb).toSorted().join()
  const { state, ...rest } = filter
  const isOwn = state !== undefined && [state].flat().toSorted().join() === own
  return quotedWords(flagsOf(isOwn ? rest : filter)) || '--all'
}

function written(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

const camelCase = (name: string): string =>
  name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
