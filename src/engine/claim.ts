// The typed form of what a claim answers.

import type { Database } from './database.ts'

/** What a worker wants of one queue. */
export interface Want {
  readonly queue: string
  readonly limit: number
  readonly kinds: readonly string[]
  /** Where the frontier stands, by kind; a line that is not named is looked at from its beginning. */
  readonly from?: Readonly<Record<string, readonly LinePosition[]>>
  /** Whether a job that must run alone is welcome. Default true. */
  readonly alone?: boolean
  /** Where queues share slots: which is visited first. */
  readonly turn?: number
  /** And up to how many jobs, those of earlier turns among them. */
  readonly upto?: number
}

/** A place in the line of a kind and a priority. */
export interface LinePosition {
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
  /** Minus infinity, which a row written by hand may have, is read as 1970. */
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
  /** Each queue that was asked for runs as many jobs as its limit allows. */
  readonly isFull: boolean
  readonly xmin: number
  readonly xmax: number
  /** What finding and locking cost the server, without moving. Unit: ms. */
  readonly lookedMs: number
}

/** A job with something that few have. */
type Row = [
  string,
  string,
  string,
  number,
  number,
  number,
  unknown,
  boolean,
  number | null,
  number | null,
  number | null,
  number | null,
  string | null,
  string | null,
  string | null,
  Record<string, unknown> | null,
  string | null,
  number,
  number | null,
]

/** Jobs that have nothing but what every job has, by what they share. The lists are SQL arrays as text: `{1,2}`. */
interface Alike {
  readonly queue: string
  readonly kind: string
  readonly priority: number
  readonly attempt: number
  readonly failures: number
  readonly timeout: number | null
  readonly max_attempts: number | null
  readonly ids: string
  readonly available_at: string
  readonly enqueued_at: string
  readonly inputs: readonly unknown[]
}

interface Reply {
  readonly jobs: readonly Row[]
  readonly alike: readonly Alike[]
  readonly claim_id: string
  readonly alone: boolean
  readonly found: Record<string, number>
  readonly now: number
  readonly next_due: number | null
  readonly full: boolean
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
    [workerId, wantsJson(wants), sleepingMs === null ? null : String(sleepingMs)],
    { timeoutMs },
  )
  const jobs = reply.jobs.map((row) => read(row, reply.claim_id, askedAt))
  for (const alike of reply.alike) readAlike(alike, reply.claim_id, jobs)
  return {
    jobs: jobs.sort(byOrder),
    alone: reply.alone,
    found: reply.found,
    nowMs: reply.now,
    nextDueMs: reply.next_due,
    isFull: reply.full,
    xmin: Number(reply.xmin),
    xmax: Number(reply.xmax),
    lookedMs: reply.looked_ms,
  }
}

/** An answer that holds jobs together is read here, which releases before 0.2 do not. */
const wantsJson = (wants: readonly Want[]): string =>
  JSON.stringify(wants.map((want) => ({ ...want, alike: true })))

function read(row: Row, claimId: string, askedAt: number): ClaimedJob {
  const mayWaitMs = row[18]
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
    availableAtMs: row[8] ?? 0,
    enqueuedAtMs: row[9] ?? 0,
    timeoutMs: row[10],
    maxAttempts: row[11],
    tenantId: row[12],
    dedupeKey: row[13],
    idempotencyKey: row[14],
    metadata: row[15],
    retriedFrom: row[16],
    losses: row[17],
    expiresAt: mayWaitMs === null ? null : askedAt + mayWaitMs,
  }
}

function readAlike(alike: Alike, claimId: string, into: ClaimedJob[]): void {
  const { queue, kind, priority, attempt, failures, inputs } = alike
  const ids = listOf(alike.ids)
  const availableAt = listOf(alike.available_at)
  const enqueuedAt = listOf(alike.enqueued_at)
  for (let n = 0; n < ids.length; n++) {
    into.push({
      id: ids[n]!,
      claimId,
      queue,
      kind,
      priority,
      attempt,
      failures,
      input: inputs[n],
      isLarge: false,
      availableAtMs: msOf(availableAt[n]!),
      enqueuedAtMs: msOf(enqueuedAt[n]!),
      timeoutMs: alike.timeout,
      maxAttempts: alike.max_attempts,
      tenantId: null,
      dedupeKey: null,
      idempotencyKey: null,
      metadata: null,
      retriedFrom: null,
      losses: 0,
      expiresAt: null,
    })
  }
}

/** The elements of an SQL array of numbers. */
const listOf = (text: string): string[] => text.slice(1, -1).split(',')

const msOf = (text: string): number => (text === 'NULL' ? 0 : Number(text))

/** The server moves the rows of a batch in no order; handlers start in that of the lines. */
function byOrder(a: ClaimedJob, b: ClaimedJob): number {
  return (
    b.priority - a.priority ||
    a.availableAtMs - b.availableAtMs ||
    a.id.length - b.id.length ||
    (a.id < b.id ? -1 : 1)
  )
}
