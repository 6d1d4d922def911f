// Which jobs a change applies to: the states of its verb, and a filter narrowed to them.

import { suggest } from '../ground/nearest.ts'
import { bulkStatesOf, statesOf } from '../ground/states.ts'
import type { BulkVerb, JobFilter } from '../index.ts'
import { UsageError } from './exit.ts'

/**
 * The filter of what would be changed: where it names no state, the verb's own.
 *
 * Errors: UsageError when it names a state that the verb does not apply to.
 */
export function appliesTo(verb: BulkVerb, filter: JobFilter): JobFilter {
  const states = statesOf(verb)
  if (filter.state === undefined) return { ...filter, state: bulkStatesOf(verb) }
  const isWaiting = states.includes('queued')
  const known: readonly string[] = [...states, ...(isWaiting ? ['scheduled', 'due'] : [])]
  const wrong = [filter.state].flat().find((state) => !known.includes(state))
  if (wrong === undefined) return filter
  throw new UsageError(
    `${verb.replace('_', '-')} does not apply to jobs that are ${wrong}; ${suggest(wrong, known)}`,
  )
}
