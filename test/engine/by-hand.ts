// Plays workers by hand: the SQL verbs as a test calls them, and looks at whole tables.

import { randomUUID } from 'node:crypto'
import type { TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

/** Rows are what the statement says. */
export type Row = any

/** Whatever can run a statement: the test's database, or one session of it. */
export interface Runner {
  query(text: string, values?: unknown[]): Promise<{ rows: Row[] }>
}

/** A pair that fences: what every later write of a claimed job names. */
export interface Held {
  readonly id: string
  readonly claim_id: string
}

/** A claimed job, as far as tests look at it. */
export interface Taken extends Held {
  readonly queue: string
  readonly kind: string
  readonly priority: number
  readonly attempt: number
  readonly failures: number
  readonly input: unknown
  readonly losses: number
}

export interface Reply {
  readonly jobs: readonly Taken[]
  readonly ids: readonly string[]
  readonly alone: boolean
  readonly found: Record<string, number>
  readonly now: number
  readonly next_due: number | null
}

export interface Want {
  readonly queue?: string
  readonly limit?: number
  readonly kinds?: readonly string[]
  /** By kind. */
  readonly from?: Readonly<Record<string, readonly { priority: number; at: string; id: string }[]>>
  readonly alone?: boolean
}

/** A worker without a process. */
export interface Hand {
  readonly id: string
  claim(want?: Want | readonly Want[], through?: Runner): Promise<Reply>
}

export async function register(db: TestRowlock, lease = '1 hour'): Promise<Hand> {
  const id = randomUUID()
  await db.sql('select rowlock.register($1, $2, $3)', [id, lease, { name: 'by hand', kinds: ['k'] }])
  return {
    id,
    async claim(want = {}, through = db.pool) {
      const wants = (Array.isArray(want) ? want : [want]).map((one) => ({
        queue: 'default',
        limit: 1000,
        kinds: ['k'],
        ...one,
      }))
      const text = 'select rowlock.claim($1, $2) as reply'
      return readClaim((await through.query(text, [id, JSON.stringify(wants)])).rows[0].reply)
    },
  }
}

/** The jobs in the order of their lines; the server moves the rows of a batch in none. */
function readClaim(reply: Row): Reply {
  const jobs: (Taken & { at: number })[] = reply.jobs.map((row: Row[]) => ({
    id: row[0],
    claim_id: reply.claim_id,
    queue: row[1],
    kind: row[2],
    priority: row[3],
    attempt: row[4],
    failures: row[5],
    input: row[6],
    at: row[8],
    losses: row[17],
  }))
  jobs.sort((a, b) => b.priority - a.priority || a.at - b.at || Number(a.id) - Number(b.id))
  return { ...reply, jobs, ids: jobs.map(({ id }) => id) }
}

/** Put one job of kind `k` in. */
export async function enqueue(
  db: TestRowlock,
  options: Record<string, unknown> = {},
  kind = 'k',
): Promise<string> {
  return db.value('select id from rowlock.enqueue($1, $2, $3)', [kind, '{}', options])
}

/** Put many in, by the statement that the client sends. */
export async function enqueueMany(
  db: { pool: Runner },
  jobs: readonly Record<string, unknown>[],
  through: Runner = db.pool,
): Promise<{ ids: string[]; existing: number[] }> {
  const full = jobs.map((job) => ({ kind: 'k', input: {}, ...job }))
  const { rows } = await through.query('select rowlock.enqueue_many($1) as reply', [JSON.stringify(full)])
  return rows[0].reply
}

/** Put `count` plain jobs into waiting at once; `columns` are SQL expressions, in which `n` counts from 1. */
export async function fill(
  db: TestRowlock,
  count: number,
  columns: Record<string, string> = {},
): Promise<void> {
  const all: Record<string, string> = {
    id: "nextval('rowlock.job_id')",
    available_at: "clock_timestamp() - interval '1 s'",
    enqueued_at: 'clock_timestamp()',
    queue: "'default'",
    kind: "'k'",
    input: "'{}'",
    ...columns,
  }
  const [names, values] = [Object.keys(all).join(', '), Object.values(all).join(', ')]
  await db.sql(
    `insert into rowlock.waiting (${names}) select ${values} from generate_series(1, ${count}) as n`,
  )
}

/** Wait until a session of this database waits for a lock. */
export async function untilBlocked(db: TestRowlock, count = 1): Promise<void> {
  await until(`${count} sessions wait for a lock`, async () => {
    const text = `select count(*)::integer from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'`
    return (await db.value<number>(text)) >= count
  })
}

/** Call a verb that takes pairs: complete, fail, snooze, hand_back, abandon, start. */
export async function verb(
  db: { pool: Runner },
  name: string,
  jobs: readonly (Held & Record<string, unknown>)[],
  through: Runner = db.pool,
): Promise<Row> {
  const { rows } = await through.query(`select rowlock.${name}($1) as reply`, [JSON.stringify(jobs)])
  return rows[0].reply
}

export const held = ({ id, claim_id }: Held, more: Record<string, unknown> = {}) => ({
  id,
  claim_id,
  ...more,
})

export async function stateOf(db: TestRowlock, id: string): Promise<string | undefined> {
  return db.value('select state from rowlock.job where id = $1', [id])
}

const TABLES = [
  'waiting',
  'running',
  'finished',
  'dead_letter',
  'attempt',
  'payload',
  'dedupe',
  'cancel_request',
]

/** Every row of every table that says something about jobs, to compare whole databases. */
export async function picture(db: { sql: TestRowlock['sql'] }, tables: readonly string[] = TABLES) {
  const parts = tables.map(
    (table) => `'${table}', (select coalesce(json_agg(t order by t::text), '[]') from rowlock.${table} as t)`,
  )
  const [row] = await db.sql(`select json_build_object(${parts.join(', ')}) as picture`)
  return row.picture as Record<string, unknown[]>
}

/** Let the leases of these workers be over. */
export async function endLease(db: TestRowlock, ...hands: Hand[]): Promise<void> {
  await db.sql(
    `update rowlock.worker set expires_at = clock_timestamp() - interval '1 ms' where id = any ($1::uuid[])`,
    [hands.map(({ id }) => id)],
  )
}

/** Small numbers that look random and are the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** The seed of a run: ROWLOCK_TEST_SEED, or a new one; printed, so that a failure can be repeated. */
export function seedOf(what: string): number {
  const seed = Number(process.env.ROWLOCK_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`${what}: ROWLOCK_TEST_SEED=${seed}`)
  return seed
}

/** What a statement is refused with. */
export async function refusal(
  work: Promise<unknown>,
): Promise<{ code: string; message: string; detail: Row }> {
  const error = await work.then(
    () => Promise.reject(new Error('was not refused')),
    (refused: { code: string; message: string; detail?: string }) => refused,
  )
  if (error.code === undefined) throw error
  const detail = error.detail?.startsWith('{') ? JSON.parse(error.detail) : error.detail
  return { code: error.code, message: error.message, detail }
}
