// A worker process and the database: begin, beat, sleep, end.

import type { Database } from './database.ts'

/** What a job that has started is told as. */
export interface StartedJob {
  readonly id: string
  readonly claim_id: string
  /** Unit: ms since the start. */
  readonly ago_ms?: number
  readonly in_transaction?: boolean
  /** The server's process of the session that the transaction is in. */
  readonly session_pid?: number
}

/** Settings by queue, of those that this worker serves and that have some. */
export type ServedSettings = Readonly<Record<string, ServedQueueSettings>>

/** What workers follow of a queue's settings. */
interface ServedQueueSettings {
  /** Null: as each worker was started with. */
  readonly concurrency?: number | null
  /** How many run or start is limited: none of it is claimed ahead. */
  readonly limited?: boolean
}

/** What the heartbeat brings back. */
export interface Beat {
  readonly now: number
  readonly expires_at: number
  readonly cancel: readonly { readonly id: string; readonly reason: string | null }[]
  /** 0: this worker maintains. Else the time until the leases of all elder workers would be over. Unit: ms. */
  readonly duty_in_ms: number
  readonly settings: ServedSettings
}

/** Source: sql/functions/register.sql */
export function register(
  database: Database,
  workerId: string,
  leaseMs: number,
  facts: Record<string, unknown>,
  timeoutMs: number,
): Promise<{ readonly channel: string; readonly settings: ServedSettings }> {
  const args = `$1::text::uuid, $2::text::interval, $3::text::jsonb`
  return database.call('register', args, [workerId, `${leaseMs} ms`, JSON.stringify(facts)], { timeoutMs })
}

/**
 * Null when the lease is over, for ever.
 * Source: sql/functions/heartbeat.sql
 */
export function heartbeat(
  database: Database,
  workerId: string,
  started: readonly StartedJob[],
  facts: Record<string, unknown>,
  timeoutMs: number,
): Promise<Beat | null> {
  const args = '$1::text::uuid, $2::text::jsonb, $3::text::jsonb'
  return database.call('heartbeat', args, [workerId, JSON.stringify(started), JSON.stringify(facts)], {
    timeoutMs,
  })
}

/**
 * Say that jobs start now, before their handlers are called. Answers the ids that are still ours.
 * Source: sql/functions/start.sql
 */
export async function start(
  database: Database,
  jobs: readonly StartedJob[],
  timeoutMs: number,
): Promise<Set<string>> {
  return new Set(
    await database.call<string[]>('start', '$1::text::jsonb', [JSON.stringify(jobs)], { timeoutMs }),
  )
}

/** Source: sql/functions/sleep.sql */
export async function sleep(
  database: Database,
  workerId: string,
  queues: readonly string[],
  forMs: number,
  timeoutMs: number,
): Promise<void> {
  const names = 'array(select jsonb_array_elements_text($2::text::jsonb))'
  const until = `rowlock.now() + $3::text::double precision * interval '1 ms'`
  const args = `$1::text::uuid, ${names}, ${until}`
  await database.call('sleep', args, [workerId, JSON.stringify(queues), String(forMs)], { timeoutMs })
}

/** Source: sql/functions/retire.sql */
export async function retire(database: Database, workerId: string, timeoutMs: number): Promise<void> {
  await database.call('retire', '$1::text::uuid', [workerId], { timeoutMs })
}

/**
 * The jobs that the database thinks this worker holds.
 * Source: the table running
 */
export async function heldJobs(
  database: Database,
  workerId: string,
  timeoutMs: number,
): Promise<{ id: string; claimId: string; attempt: number; inTransaction: boolean }[]> {
  return database.query(
    `select r.id::text as id, r.claim_id::text as "claimId", r.attempt, r.in_transaction as "inTransaction"
       from rowlock.running r where r.worker_id = $1::text::uuid order by r.id`,
    [workerId],
    { timeoutMs },
  )
}
