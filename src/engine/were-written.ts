// After an answer was lost: which of these outcomes were written?

import type { Database } from './database.ts'
import type { Outcome } from './finish.ts'

/**
 * The ids of those that are on record: a completion in the history, any other end as a row of its attempt.
 *
 * Source: sql/views/job.sql. Of a queue that keeps no history completions say nothing here.
 */
export async function wereWritten(
  database: Database,
  outcomes: readonly Pick<Outcome, 'id' | 'attempt' | 'verb'>[],
  timeoutMs: number,
): Promise<Set<string>> {
  const asked = outcomes.map(({ id, attempt, verb }) => ({ id, attempt, completed: verb === 'complete' }))
  const rows = await database.query<{ id: string }>(
    `select g.id::text as id
       from jsonb_to_recordset($1::text::jsonb) as g (id bigint, attempt integer, completed boolean)
      where case when g.completed
            then exists (select from rowlock.finished f
                          where f.id = g.id and f.attempt = g.attempt and f.state = 'done')
            else exists (select from rowlock.attempt a
                          where a.job_id = g.id and a.attempt = g.attempt and a.outcome <> 'lost') end`,
    [JSON.stringify(asked)],
    { timeoutMs },
  )
  return new Set(rows.map(({ id }) => id))
}
