// SQL past every fault: installs what writes the history down, reads the history back.

import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { AuditRow, EndAttempt, EndJob, History, LeaseRow, LedgerRow } from './history.ts'

const AUDIT = readFileSync(new URL('./audit.sql', import.meta.url), 'utf8')

/** A way to the database that waits while the server is away. */
export interface Stage {
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  session<T>(body: (query: (text: string) => Promise<unknown>) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const AGAIN_AFTER_MS = 50
const AWAY_AT_MOST_MS = 120_000
const NAME = 'faults'

/** Open it on a database with Rowlock in it. */
export function openStage(connectionString: string): Stage {
  const pool = new pg.Pool({ connectionString, max: 6, application_name: NAME })
  pool.on('error', () => {})
  return {
    async sql<Row>(text: string, values?: unknown[]) {
      const end = performance.now() + AWAY_AT_MOST_MS
      for (;;) {
        try {
          return (await pool.query(text, values as never[])).rows as Row[]
        } catch (error) {
          const { code = '', severity } = error as { code?: string; severity?: string }
          const isAway = severity !== 'ERROR' || code.startsWith('57P')
          if (!isAway || performance.now() > end) throw error
          await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS))
        }
      }
    },
    async session(body) {
      const client = new pg.Client({ connectionString, application_name: NAME })
      client.on('error', () => {})
      await client.connect()
      try {
        return await body((text) => client.query(text))
      } finally {
        await client.end().catch(() => {})
      }
    },
    close: () => pool.end(),
  }
}

/** Make the schema `faults`, and the triggers on Rowlock's tables. */
export async function installAudit(stage: Pick<Stage, 'sql'>): Promise<void> {
  await stage.sql(AUDIT)
}

const ms = (column: string) => `extract(epoch from ${column})::double precision * 1000`

/** What the database has written down. */
export type Written = Pick<
  History,
  'audit' | 'leases' | 'ledger' | 'jobs' | 'attempts' | 'keys' | 'asked' | 'booked'
>

/** Read it all. */
export async function readWritten({ sql }: Pick<Stage, 'sql'>): Promise<Written> {
  const audit = await sql<AuditRow>(
    `select phase, op, job_id::text as "jobId", state, attempt, failures, max_attempts as "maxAttempts",
            claim_id::text as "claimId", worker_id::text as "workerId", ${ms('claimed_at')} as "claimedAt",
            in_transaction as "inTransaction", session_lives as "sessionLives", queue, kind,
            dedupe_key as "dedupeKey", txid, ${ms('at')} as at
       from faults.audit order by seq`,
  )
  const leases = await sql<LeaseRow>(
    `select op, worker_id::text as "workerId", pid, ${ms('expires_at')} as "expiresAt",
            ${ms('at')} as at
       from faults.lease order by seq`,
  )
  const ledger = await sql<LedgerRow>(
    `select job_id::text as "jobId", attempt, key, pid, run, phase, how, ${ms('at')} as at
       from faults.ledger order by at, seq`,
  )
  const jobs = await sql<EndJob>(
    `select id::text as id, state, input ->> 'ref' as ref, kind, queue, dedupe_key as "dedupeKey",
            retried_from::text as "retriedFrom"
       from rowlock.job order by id`,
  )
  const attempts = await sql<EndAttempt>(
    'select job_id::text as "jobId", attempt, outcome, cause from rowlock.attempt order by ended_at',
  )
  const keys = await sql<History['keys'][number]>(
    'select queue, key, job_id::text as "jobId" from rowlock.dedupe order by queue, key',
  )
  const asked = await sql<{ ref: string }>('select ref from faults.asked order by ref')
  const booked = await sql<{ id: string }>('select job_id::text as id from faults.booked order by job_id')
  return {
    audit,
    leases,
    ledger,
    jobs,
    attempts,
    keys,
    asked: asked.map(({ ref }) => ref),
    booked: booked.map(({ id }) => id),
  }
}
