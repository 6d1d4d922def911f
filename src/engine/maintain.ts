// What the worker on duty does for all: typed calls of the maintenance verbs.

import type { Database } from './database.ts'

/** A job that the reaper gave back. */
export interface Reaped {
  readonly id: string
  readonly to: string
  readonly available_at: number
}

/** Source: sql/functions/reap.sql */
export function reap(database: Database, limit: number, timeoutMs: number): Promise<readonly Reaped[]> {
  return database.call('reap', '$1::text::integer', [String(limit)], { timeoutMs })
}

/** What a sweep tidied: how many of each. */
export interface Swept {
  readonly expired: number
  readonly cancelled: number
  readonly keys: number
  readonly flags: number
  readonly audit: number
  readonly bulks: number
  readonly imports: number
}

/** Source: sql/functions/sweep.sql */
export function sweep(database: Database, limit: number, timeoutMs: number): Promise<Swept> {
  return database.call('sweep', '$1::text::integer', [String(limit)], { timeoutMs })
}

/** Source: sql/functions/make_days.sql */
export async function makeDays(database: Database, timeoutMs: number): Promise<number> {
  return Number(await database.call('make_days', '', [], { timeoutMs }))
}

/** Kinds that wait, due, while no living worker handles them in their queue. Source: sql/functions/unhandled.sql */
export function unhandledKinds(
  database: Database,
  timeoutMs: number,
): Promise<{ readonly queue: string; readonly kind: string; readonly due_since: Date }[]> {
  return database.query('select * from rowlock.unhandled()', [], { timeoutMs })
}
