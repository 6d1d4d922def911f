// What happened to a job, line by line.

import type { Place } from './look.ts'
import { namedRows } from './named.ts'

/** One thing that happened to a job. */
export interface StoryLine {
  readonly at: Date
  /**
   * `enqueued`, `claimed`, `started`; how an attempt ended; the verb of somebody who changed it; where the job is by
   * now. The instant of the last line lies ahead when the job is scheduled.
   */
  readonly event: string
  readonly attempt: number | null
  /** The worker's name while it is known, else its id. */
  readonly worker: string | null
  readonly cause: string | null
  readonly actor: string | null
  readonly reason: string | null
  /** What else is known, named as SQL names it. */
  readonly detail: Readonly<Record<string, unknown>> | null
}

/** In order. Source: sql/functions/story.sql */
export async function story(place: Place, id: string): Promise<StoryLine[]> {
  return namedRows<StoryLine>(place, 'select * from rowlock.story($1::text::bigint)', [id])
}
