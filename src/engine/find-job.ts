// One job with what is known of it, whatever phase it is in.

import type { State } from '../ground/states.ts'
import type { Database } from './database.ts'
import { named } from './named.ts'
import type { Queryable } from './seam.ts'

/** A job as `rowlock.job` shows it. */
export interface JobRow {
  readonly id: string
  readonly state: State
  readonly queue: string
  readonly kind: string
  readonly priority: number
  /** How often it was claimed. */
  readonly attempt: number
  readonly failures: number
  readonly maxAttempts: number
  /** How long an attempt may take. Unit: ms. */
  readonly timeoutMs: number
  readonly availableAt: Date
  readonly enqueuedAt: Date
  readonly claimedAt: Date | null
  readonly startedAt: Date | null
  /** When it ended, or became a dead letter. */
  readonly finishedAt: Date | null
  readonly expiresAt: Date | null
  readonly workerId: string | null
  readonly tenantId: string | null
  readonly dedupeKey: string | null
  /** As it was given; null when the handler gets one of the installation's. */
  readonly idempotencyKey: string | null
  /** Why it is retryable, failed or a dead letter. */
  readonly cause: string | null
  /** What a dead letter's last attempt threw; those of others stand with their attempts. */
  readonly error: unknown
  /** How often it was lost with its worker and had not ended since; null once it has ended. */
  readonly losses: number | null
  /** The backoff it was enqueued with; null: the default. */
  readonly backoff: unknown
  readonly actor: string | null
  readonly reason: string | null
  readonly input: unknown
  readonly result: unknown
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly retriedFrom: string | null
  /** Attempts that did not end the job well, oldest first. */
  readonly attempts: readonly AttemptRow[]
}

/** An attempt that did not end its job well. */
export interface AttemptRow {
  readonly attempt: number
  readonly outcome: 'failed' | 'timed_out' | 'lost' | 'snoozed' | 'handed_back' | 'cancelled'
  readonly cause: string | null
  readonly error: unknown
  readonly workerId: string
  readonly claimedAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date
}

const QUERY = `
select (to_jsonb(j) - 'id' - 'timeout' || jsonb_build_object(
         'id', j.id::text, 'retried_from', j.retried_from::text, 'timeout_ms', rowlock.length_ms(j.timeout),
         'attempts', coalesce((
           select jsonb_agg(to_jsonb(a) - 'job_id' order by a.attempt, a.ended_at)
             from rowlock.attempt a where a.job_id = j.id), '[]')))::text as reply
  from rowlock.job j
 where j.id = $1::text::bigint`

/** Null when there is none. Source: sql/views/job.sql */
export async function findJob(
  database: Database,
  queryable: Queryable | undefined,
  id: string,
): Promise<JobRow | null> {
  const rows =
    queryable === undefined
      ? await database.query<{ reply: string }>(QUERY, [id])
      : await database.queryOn<{ reply: string }>(queryable, QUERY, [id])
  const [row] = rows
  return row === undefined ? null : read(JSON.parse(row.reply))
}

function read(row: Record<string, unknown>): JobRow {
  const { attempts, input, result, metadata, error, backoff, ...rest } = row
  const columns = named(rest)
  return {
    ...columns,
    input,
    result,
    metadata,
    error,
    backoff,
    attempts: (attempts as Record<string, unknown>[]).map(({ error, ...attempt }) => ({
      ...named(attempt),
      error,
    })),
  } as unknown as JobRow
}
