// The typed form of what a claim answers.

import type { Database } from './database.ts'

/** What a worker wants of one queue. */
export interface Want {
  readonly queue: string
  readonly limit: number
  readonly kinds: readonly string[]
  /** Where the frontier stands; a line that is not named is looked at from its beginning. */
  readonly from?: readonly LinePosition[]
  /** Whether a job that must run alone is welcome. Default true. */
  readonly alone?: boolean
}

/** A place in a line. */
export interface LinePosition {
  readonly kind: string
  readonly priority: number
  /** `available_at`, as an ISO string. */
  readonly at: string
  readonly id: string
}

/** A claimed job, as the claim answers it. */
export interface ClaimedJob {
  readonly id: string
  readonly claimId: string
  readonly queue: string
  readonly kind: string
  readonly priority: number
  readonly attempt: number
  readonly failures: number
  /** Undefined when it lies in payload. */
  readonly input: unknown
  readonly isLarge: boolean
  readonly availableAtMs: number
  readonly enqueuedAtMs: number
  readonly timeoutMs: number | null
  readonly maxAttempts: number | null
  readonly tenantId: string | null
  readonly dedupeKey: string | null
  readonly idempotencyKey: string | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly retriedFrom: string | null
  readonly losses: number
  /** When it has expired unless it has started, or null. Unit: ms of the monotonic clock. */
  readonly expiresAt: number | null
}

/** What one look of a worker saw and took. */
export interface Claim {
  readonly jobs: readonly ClaimedJob[]
  /** The one job of it was lost twice: it is to run alone. */
  readonly alone: boolean
  readonly found: Readonly<Record<string, number>>
  /** The database's clock. Unit: ms since 1970. */
  readonly nowMs: number
  readonly nextDueMs: number | null
  readonly xmin: number
  readonly xmax: number
  /** What finding and locking cost the server, without moving. Unit: ms. */
  readonly lookedMs: number
}

type Row = [
  string,
  string,
  string,
  number,
  number,
  number,
  unknown,
  boolean,
  number,
  number,
  // From here on only where one of them is there.
  (number | null)?,
  (number | null)?,
  (string | null)?,
  (string | null)?,
  (string | null)?,
  (Record<string, unknown> | null)?,
  (string | null)?,
  number?,
  (number | null)?,
]

interface Reply {
  readonly jobs: readonly Row[]
  readonly claim_id: string
  readonly alone: boolean
  readonly found: Record<string, number>
  readonly now: number
  readonly next_due: number | null
  readonly xmin: string
  readonly xmax: string
  readonly looked_ms: number
}

/**
 * Errors: LEASE_LOST, DATABASE_UNAVAILABLE; after any other fault of the connection the claim may have happened: the
 * worker looks for jobs that it holds unknowingly, and gives them back.
 * Source: sql/functions/claim.sql
 */
export async function claim(
  database: Database,
  workerId: string,
  wants: readonly Want[],
  sleepingMs: number | null,
  timeoutMs: number,
): Promise<Claim> {
  // Time is counted from here: a job may be given back a little early, and never starts too late.
  const askedAt = performance.now()
  const reply = await database.call<Reply>(
    'claim',
    `$1::text::uuid, $2::text::jsonb, rowlock.now() + $3::text::double precision * interval '1 ms'`,
    [workerId, JSON.stringify(wants), sleepingMs === null ? null : String(sleepingMs)],
    { timeoutMs },
  )
  return {
    jobs: reply.jobs.map((row) => read(row, reply.claim_id, askedAt)).sort(byOrder),
    alone: reply.alone,
    found: reply.found,
    nowMs: reply.now,
    nextDueMs: reply.next_due,
    xmin: Number(reply.xmin),
    xmax: Number(reply.xmax),
    lookedMs: reply.looked_ms,
  }
}

function read(row: Row, claimId: string, askedAt: number): ClaimedJob {
  const mayWaitMs = row[18] ?? null
  return {
    id: row[0],
    claimId,
    queue: row[1],
    kind: row[2],
    priority: row[3],
    attempt: row[4],
    failures: row[5],
    input: row[7] ? undefined : row[6],
    isLarge: row[7],
    availableAtMs: row[8],
    enqueuedAtMs: row[9],
    timeoutMs: row[10] ?? null,
    maxAttempts: row[11] ?? null,
    tenantId: row[12] ?? null,
    dedupeKey: row[13] ?? null,
    idempotencyKey: row[14] ?? null,
    metadata: row[15] ?? null,
    retriedFrom: row[16] ?? null,
    losses: row[17] ?? 0,
    expiresAt: mayWaitMs === null ? null : askedAt + mayWaitMs,
  }
}

/** The server moves the rows of a batch in no order; handlers start in that of the lines. */
function byOrder(a: ClaimedJob, b: ClaimedJob): number {
  return (
    b.priority - a.priority ||
    a.availableAtMs - b.availableAtMs ||
    a.id.length - b.id.length ||
    (a.id < b.id ? -1 : 1)
  )
}
