// What the queue says of itself: read for the live display, and for the account.

import type pg from 'pg'

/** How many jobs of a queue are in a state. */
export interface Count {
  readonly queue: string
  readonly state: string
  readonly count: number
}

/** What the queue says of one job. */
export interface JobFact {
  readonly id: string
  readonly kind: string
  readonly state: string
  readonly cause: string | null
  /** Outcomes of the attempts that did not end it well, oldest first. */
  readonly outcomes: readonly string[]
}

/** Jobs by queue and state. */
export async function countJobs(pool: pg.Pool): Promise<Count[]> {
  const { rows } = await pool.query<Count>(
    'select queue, state, count(*)::integer as count from rowlock.job group by queue, state order by queue, state',
  )
  return rows
}

/** How many jobs have not ended yet. */
export const openJobs = (counts: readonly Count[]): number =>
  counts
    .filter(({ state }) => ['queued', 'retryable', 'running'].includes(state))
    .reduce((sum, { count }) => sum + count, 0)

/** Everything the queue knows of every job. */
export async function readJobs(pool: pg.Pool): Promise<JobFact[]> {
  const { rows } = await pool.query<JobFact>(`
    select j.id::text as id, j.kind, j.state, case j.state when 'cancelled' then j.reason else j.cause end as cause,
           coalesce(array_agg(a.outcome order by a.attempt, a.ended_at)
                      filter (where a.job_id is not null), '{}') as outcomes
      from rowlock.job j
      left join rowlock.attempt a on a.job_id = j.id
     group by j.id, j.kind, j.state, j.cause, j.reason
     order by j.id`)
  return rows
}

/** The worker that certainly runs jobs: most of them started, a transaction among them if possible. */
export async function busiestWorker(
  pool: pg.Pool,
): Promise<{ workerId: string; started: number } | undefined> {
  const { rows } = await pool.query<{ workerId: string; started: number }>(`
    select worker_id::text as "workerId", count(*)::integer as started
      from rowlock.job
     where state = 'running' and started_at is not null
     group by worker_id
     order by bool_or(kind = 'book-invoice') desc, count(*) desc
     limit 1`)
  return rows[0]
}

/** Jobs that have not ended, in words, for a person who asks why. */
export async function describeOpenJobs(pool: pg.Pool, limit = 20): Promise<string[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `
    select j.id, j.kind, j.state, j.attempt, j.failures, j.cause, j.available_at, j.claimed_at, j.started_at, w.name,
           w.expires_at > clock_timestamp() as is_leased
      from rowlock.job j left join rowlock.worker w on w.id = j.worker_id
     where j.state in ('queued', 'retryable', 'running')
     order by j.id
     limit $1`,
    [limit],
  )
  return rows.map((row) => {
    const at = (instant: unknown) => (instant as Date).toISOString().slice(11, 23)
    const words = [
      `job ${row.id} ${row.kind}: ${row.state}, attempt ${row.attempt}, ${row.failures} failures`,
      row.cause === null ? '' : `the last one ${row.cause}`,
      `due ${at(row.available_at)}`,
      row.claimed_at === null
        ? ''
        : `claimed ${at(row.claimed_at)} by ${row.name ?? 'a worker that is gone'}`,
      row.claimed_at === null ? '' : row.is_leased ? 'whose lease holds' : 'whose lease is over',
      row.started_at === null ? '' : `started ${at(row.started_at)}`,
    ]
    return words.filter((word) => word !== '').join(', ')
  })
}
