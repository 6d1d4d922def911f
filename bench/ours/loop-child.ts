// A child process that claims and finishes as fast as it can, without handlers, by the worker's own verbs; and tells
// how many rows its claims found locked.

import pg from 'pg'
import { verbs } from '../kit/rowlock.ts'

/** How a loop goes about it. */
export interface LoopOptions {
  readonly url: string
  readonly batch: number
  /** The part of claims whose plans are looked at for rows that were skipped. 0: none. */
  readonly sampled?: number
}

/** What one loop did. */
export interface Looped {
  readonly jobs: number
  readonly claims: number
  /** Claims that found nothing, though jobs were left. */
  readonly empty: number
  /** Claims that were looked into, and rows that they found and could not lock. */
  readonly sampled: number
  readonly skipped: number
  readonly lastEndAtMs: number
}

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly Plans?: readonly Node[]
}

const TIMEOUT_MS = 60_000
const TRIES = 5
let ready: { database: InstanceType<typeof verbs.Database>; workerId: string; seen: Seen } | undefined

interface Seen {
  sampled: number
  skipped: number
}

/** Connect, register, and make the first claim, of a queue that is not there: what is measured is no beginning. */
export async function prepare(options: LoopOptions): Promise<void> {
  const seen: Seen = { sampled: 0, skipped: 0 }
  const pool = new pg.Pool({ connectionString: options.url, max: 1 })
  pool.on('connect', (client) => client.on('notice', ({ message }) => note(seen, message ?? '')))
  if (options.sampled) {
    await pool.query(`load 'auto_explain';
      set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set auto_explain.log_format = 'json';
      set auto_explain.log_level = 'notice'; set auto_explain.sample_rate = ${options.sampled};`)
  }
  const database = new verbs.Database({ pool: pool as never })
  const workerId = crypto.randomUUID()
  await verbs.register(database, workerId, 3_600_000, {}, TIMEOUT_MS)
  await verbs.claim(database, workerId, [{ queue: 'none', limit: 1, kinds: ['k'] }], null, TIMEOUT_MS)
  ready = { database, workerId, seen }
}

/** Claim and finish until several looks in turn find nothing. */
export async function drain(options: LoopOptions): Promise<Looped> {
  const { database, workerId, seen } = ready!
  seen.sampled = 0
  seen.skipped = 0
  const done = { jobs: 0, claims: 0, empty: 0, lastEndAtMs: 0 }
  const wants = [{ queue: 'default', limit: options.batch, kinds: ['k'] }]
  for (let idle = 0; idle < TRIES; ) {
    const { jobs } = await verbs.claim(database, workerId, wants, null, TIMEOUT_MS)
    done.claims++
    if (jobs.length === 0) {
      done.empty++
      idle++
      await new Promise((resolve) => setTimeout(resolve, 2))
      continue
    }
    idle = 0
    const ended = jobs.map(({ id, claimId, attempt, queue }) => ({
      verb: 'complete' as const,
      id,
      claim_id: claimId,
      attempt,
      queue,
      ran_ms: 0,
    }))
    await verbs.finish(database, ended, TIMEOUT_MS)
    done.jobs += jobs.length
    done.lastEndAtMs = Date.now()
  }
  return { ...done, empty: done.empty - TRIES, claims: done.claims - TRIES, ...seen }
}

/** A plan of a statement that locks: what its scan found against what it locked. */
function note(seen: Seen, message: string): void {
  if (!message.includes('"LockRows"') || !message.includes('plan:')) return
  const { Plan } = JSON.parse(message.slice(message.indexOf('{'))) as { Plan: Node }
  const locking = find(Plan)
  const scan = locking?.Plans?.[0]
  if (locking === undefined || scan?.['Relation Name'] !== 'waiting') return
  seen.sampled++
  seen.skipped += rowsOf(scan) - rowsOf(locking)
}

function find(node: Node): Node | undefined {
  if (node['Node Type'] === 'LockRows') return node
  return node.Plans?.map(find).find((each) => each !== undefined)
}

const rowsOf = (node: Node): number => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1)
