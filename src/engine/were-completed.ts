// After an answer was lost: which of these jobs are done?

import type { Database } from './database.ts'

/** Source: sql/views/job.sql. A queue that keeps no history says nothing here. */
export async function wereCompleted(database: Database, ids: readonly string[]): Promise<Set<string>> {
  const rows = await database.query<{ id: string }>(
    `select f.id::text as id from rowlock.finished f
      where f.id = any (array(select jsonb_array_elements_text($1::text::jsonb)::bigint)) and f.state = 'done'`,
    [JSON.stringify(ids)],
  )
  return new Set(rows.map(({ id }) => id))
}
