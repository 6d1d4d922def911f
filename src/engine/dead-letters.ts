// Dead letters in groups: what went wrong, how often, since when.

import { filterText, type JobFilter } from '../ground/filter.ts'
import { type PageOptions, type Place, pageArgs } from './look.ts'
import { namedRows } from './named.ts'

/** Dead letters of one queue and kind with the same cause and the same error, but for its numbers. */
export interface DeadLetterGroup {
  readonly queue: string
  readonly kind: string
  readonly cause: string
  /** The first line of the error, each run of digits a `#`, as a filter takes it; null where it has no message. */
  readonly error: string | null
  readonly jobs: number
  readonly firstAt: Date
  readonly lastAt: Date
  /** The newest of them. */
  readonly sampleId: string
  /** Only the newest 20,000 dead letters were looked at: there are more than these. */
  readonly about: boolean
}

const QUERY = `
select g.queue, g.kind, g.cause, g.error, g.jobs, g.first_at, g.last_at, g.sample_id::text, g.about
  from rowlock.dead_letters($1::text::jsonb, $2::text::integer) as g`

/** The largest groups first. Source: sql/functions/dead_letters.sql */
export async function deadLetters(
  place: Place,
  filter: JobFilter,
  options: Pick<PageOptions, 'limit'>,
): Promise<readonly DeadLetterGroup[]> {
  const [limit] = pageArgs(options, 'deadLetters')
  return namedRows<DeadLetterGroup>(place, QUERY, [filterText(filter), limit])
}
