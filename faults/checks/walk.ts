// The life of each job, read from the audit: its claims, and every transition against the state table.

import { type State, TRANSITIONS } from '../../src/ground/states.ts'
import type { AuditRow, Violation } from '../history.ts'

/** One claim of a job, from its begin to its end. */
export interface Claim {
  readonly jobId: string
  readonly kind: string
  readonly queue: string
  readonly attempt: number
  readonly claimId: string
  readonly workerId: string
  readonly claimedAt: number
  readonly at: number
  /** `isSessionGone`: the session of its handler's transaction had ended by then. */
  end?: { readonly at: number; readonly to: State; readonly isSessionGone: boolean }
}

/** What the audit says of all jobs. */
export interface Lives {
  /** By job and attempt, as `7/2`. */
  readonly claims: ReadonlyMap<string, Claim>
  /** The state that each job was in last. */
  readonly last: ReadonlyMap<string, State>
  readonly violations: readonly Violation[]
}

interface Job {
  state: State | null
  row: AuditRow | undefined
  /** Left a table, and has not arrived in another: allowed within one transaction only. */
  leaving: AuditRow | undefined
  readonly fences: Set<string>
  claim: Claim | undefined
}

const FINAL: readonly State[] = ['done', 'failed', 'cancelled']
const ALLOWED = new Set(TRANSITIONS.filter(({ creates }) => !creates).map(({ from, to }) => `${from} ${to}`))

/** Rows in the order in which they were written. */
export function walk(rows: readonly AuditRow[]): Lives {
  const jobs = new Map<string, Job>()
  const claims = new Map<string, Claim>()
  const violations: Violation[] = []
  const holders = new Map<string, string>()
  for (const row of inPairs(rows)) {
    let job = jobs.get(row.jobId)
    if (job === undefined) {
      job = { state: null, row: undefined, leaving: undefined, fences: new Set(), claim: undefined }
      jobs.set(row.jobId, job)
    }
    const add = (oracle: Violation['oracle'], figure: Violation['figure'], says: string) =>
      void violations.push({ oracle, figure, jobId: row.jobId, says })
    if (row.op === 'insert') arrive(row, job, add, claims, holders)
    else if (row.op === 'delete') leave(row, job, add)
    else change(row, job, add)
  }
  for (const [jobId, { leaving }] of jobs) {
    if (leaving !== undefined) {
      violations.push({
        oracle: 'O1',
        figure: 'lost',
        jobId,
        says: `it left ${leaving.state} and is nowhere`,
      })
    }
  }
  return { claims, last: new Map([...jobs].map(([id, { state }]) => [id, state as State])), violations }
}

/** One statement may insert before it deletes: of one job in one transaction the delete comes first. */
function* inPairs(rows: readonly AuditRow[]): Generator<AuditRow> {
  const held = new Map<string, AuditRow>()
  const phases = new Map<string, string>()
  for (const row of rows) {
    const known = phases.get(row.jobId)
    if (row.op === 'insert' && known !== undefined && !held.has(row.jobId)) {
      held.set(row.jobId, row)
      continue
    }
    const waits = held.get(row.jobId)
    if (waits !== undefined && !(row.op === 'delete' && row.phase === known && row.txid === waits.txid)) {
      // Two rows of one job at once, and no delete beside them.
      held.delete(row.jobId)
      yield waits
    }
    yield row
    if (row.op === 'delete') phases.delete(row.jobId)
    else phases.set(row.jobId, row.phase)
    const follows = held.get(row.jobId)
    if (follows !== undefined) {
      held.delete(row.jobId)
      phases.set(row.jobId, follows.phase)
      yield follows
    }
  }
  yield* held.values()
}

type Add = (oracle: Violation['oracle'], figure: Violation['figure'], says: string) => void

function leave(row: AuditRow, job: Job, add: Add): void {
  if (FINAL.includes(row.state)) add('O3', 'illegal_transitions', `it was deleted, though ${row.state}`)
  if (job.leaving !== undefined) add('states', 'illegal_transitions', `it left ${row.state} twice`)
  if (row.state !== job.state) {
    add('states', 'illegal_transitions', `it left ${row.state}, but was ${job.state ?? 'nowhere'}`)
  }
  job.leaving = row
}

function arrive(
  row: AuditRow,
  job: Job,
  add: Add,
  claims: Map<string, Claim>,
  holders: Map<string, string>,
): void {
  const { leaving } = job
  const from = leaving === undefined ? job.state : leaving.state
  if (leaving === undefined && job.state !== null) {
    const figure = row.phase === 'running' ? 'double_owner' : 'illegal_transitions'
    add('states', figure, `it came to ${row.state} and was ${job.state} as well`)
  }
  if (leaving !== undefined && leaving.txid !== row.txid) {
    add('states', 'illegal_transitions', `between ${leaving.state} and ${row.state} it was nowhere`)
  }
  if (!ALLOWED.has(`${from} ${row.state}`)) {
    const oracle = from !== null && FINAL.includes(from) ? 'O3' : 'states'
    add(oracle, 'illegal_transitions', `no verb takes a job from ${from ?? 'nothing'} to ${row.state}`)
  }
  count(row, leaving ?? job.row, from, add)
  if (job.claim !== undefined) {
    job.claim.end = { at: row.at, to: row.state, isSessionGone: leaving?.sessionLives === false }
    job.claim = undefined
  }
  if (row.phase === 'running') begin(row, job, add, claims)
  key(row, from, add, holders)
  job.leaving = undefined
  job.state = row.state
  job.row = row
}

/** Attempts rise by one with each claim, failures by one with each failure, and neither with anything else. */
function count(row: AuditRow, before: AuditRow | undefined, from: State | null, add: Add): void {
  const attempts = before?.attempt ?? 0
  const failures = before?.failures ?? 0
  const expected = attempts + (row.phase === 'running' ? 1 : 0)
  if (row.attempt !== expected)
    add('O4', 'illegal_transitions', `its attempt went from ${attempts} to ${row.attempt}`)
  const rises = from === 'running' && (row.state === 'retryable' || row.state === 'dead_letter')
  const allowed = rises ? [failures + 1] : [failures]
  // What ends for good or is called off may have failed once more; a redrive forgets.
  if (from === 'running' && FINAL.includes(row.state)) allowed.push(failures + 1)
  if (from === 'dead_letter' && row.state === 'queued') allowed.splice(0, 1, 0)
  if (!allowed.includes(row.failures)) {
    add('O4', 'illegal_transitions', `its failures went from ${failures} to ${row.failures}`)
  }
  const isOver = row.failures > row.maxAttempts
  const isSpent = row.failures >= row.maxAttempts && (row.phase === 'waiting' || row.phase === 'running')
  if (isOver || isSpent) {
    add('O4', 'illegal_transitions', `it is ${row.state} with ${row.failures} failures of ${row.maxAttempts}`)
  }
}

function begin(row: AuditRow, job: Job, add: Add, claims: Map<string, Claim>): void {
  const claimId = row.claimId ?? ''
  if (job.fences.has(claimId)) add('O2', 'double_owner', `claim ${claimId} took it twice`)
  job.fences.add(claimId)
  const name = `${row.jobId}/${row.attempt}`
  if (claims.has(name)) add('O4', 'double_owner', `attempt ${row.attempt} was claimed twice`)
  job.claim = {
    jobId: row.jobId,
    kind: row.kind,
    queue: row.queue,
    attempt: row.attempt,
    claimId,
    workerId: row.workerId ?? '',
    claimedAt: row.claimedAt ?? row.at,
    at: row.at,
  }
  claims.set(name, job.claim)
}

/** Of the live jobs of a queue one at most has a key. */
function key(row: AuditRow, from: State | null, add: Add, holders: Map<string, string>): void {
  if (row.dedupeKey === null) return
  const name = JSON.stringify([row.queue, row.dedupeKey])
  const isLive = row.phase === 'waiting' || row.phase === 'running'
  const holder = holders.get(name)
  if (isLive && holder !== undefined && holder !== row.jobId) {
    add('states', 'answers_broken', `job ${holder} lives and has its dedupe key as well`)
  }
  if (isLive && (from === null || from === 'dead_letter' || holder === undefined))
    holders.set(name, row.jobId)
  if (!isLive && holder === row.jobId) holders.delete(name)
}

function change(row: AuditRow, job: Job, add: Add): void {
  if (row.phase === 'finished') {
    add('O3', 'illegal_transitions', `it was changed, though ${row.state}`)
    return
  }
  if (row.state !== job.state) {
    add('states', 'illegal_transitions', `it changed in ${row.state}, but was ${job.state ?? 'nowhere'}`)
  }
  const { row: before } = job
  const isSame = (name: 'claimId' | 'workerId' | 'attempt' | 'failures') => row[name] === before?.[name]
  if (before !== undefined && !(['claimId', 'workerId', 'attempt', 'failures'] as const).every(isSame)) {
    add('O2', 'double_owner', 'its owner or its counts changed where it was')
  }
}
