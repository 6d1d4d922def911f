// A large input, read when its handler is about to start: memory is bounded by what runs, not by what is claimed.

import type { Database } from './database.ts'

/** Errors: an ordinary error when the row is gone, which is a fault of somebody's hand. */
export async function readPayload(database: Database, id: string, timeoutMs: number): Promise<unknown> {
  const [row] = await database.query<{ body: string }>(
    'select p.body::text as body from rowlock.payload p where p.job_id = $1::text::bigint',
    [id],
    { timeoutMs },
  )
  if (row === undefined) throw new Error(`the input of job ${id} is gone from payload`)
  return JSON.parse(row.body)
}
