// One owner at a time (O2), and no start that was not claimed (O4): what handlers wrote against what the audit says.

import type { EndAttempt, History, How, Violation } from '../history.ts'
import { type Leases, leasesOf } from './leases.ts'
import type { Claim, Lives } from './walk.ts'

/** One call of a handler. */
interface Span {
  readonly jobId: string
  readonly attempt: number
  readonly pid: number
  readonly start: number
  end?: { readonly at: number; readonly how: How | null }
}

/** Who judges one history. */
interface Bench {
  readonly history: History
  readonly leases: Leases
  readonly deaths: ReadonlyMap<number, number>
  readonly outcomes: ReadonlyMap<string, EndAttempt>
  readonly violations: Violation[]
}

/** Judge every span and every end of a claim. */
export function owners(history: History, lives: Lives): Violation[] {
  const bench: Bench = {
    history,
    leases: leasesOf(history.leases),
    deaths: new Map(history.deaths.map(({ pid, at }) => [pid, at])),
    outcomes: new Map(history.attempts.map((one) => [`${one.jobId}/${one.attempt}`, one])),
    violations: [],
  }
  const spans = spansOf(history, bench.violations)
  for (const list of spans.values()) overlaps(list, lives, bench)
  const byAttempt = new Map([...spans.values()].flat().map((span) => [`${span.jobId}/${span.attempt}`, span]))
  for (const [name, span] of byAttempt) wasClaimed(span, lives.claims.get(name), bench)
  for (const [name, claim] of lives.claims) {
    underLease(claim, bench)
    endedByOwner(claim, byAttempt.get(name), bench)
  }
  return bench.violations
}

/** By job, in order of their start. */
function spansOf({ ledger }: History, violations: Violation[]): Map<string, Span[]> {
  const spans = new Map<string, Span[]>()
  const open = new Map<string, Span>()
  const started = new Set<string>()
  const keys = new Map<string, string>()
  for (const { jobId, attempt, key, pid, run, phase, how, at } of ledger) {
    if ((keys.get(jobId) ?? key) !== key) {
      const says = `attempt ${attempt} had another idempotency key than those before it`
      violations.push({ oracle: 'O2', figure: 'effects_broken', jobId, says })
    }
    keys.set(jobId, key)
    const call = `${jobId}/${attempt}/${pid}/${run}`
    if (phase === 'start') {
      const span: Span = { jobId, attempt, pid, start: at }
      open.set(call, span)
      const list = spans.get(jobId)
      if (list === undefined) spans.set(jobId, [span])
      else list.push(span)
      const name = `${jobId}/${attempt}`
      if (started.has(name)) {
        const says = `the handler of attempt ${attempt} was called twice`
        violations.push({ oracle: 'O4', figure: 'double_owner', jobId, says })
      }
      started.add(name)
    } else if (phase === 'end') {
      const span = open.get(call)
      if (span !== undefined) span.end = { at, how }
    }
  }
  return spans
}

/** The one that runs longest is kept: whoever starts after it starts after all. */
function overlaps(spans: readonly Span[], lives: Lives, bench: Bench): void {
  let longest: Span | undefined
  for (const span of spans) {
    if (
      longest !== undefined &&
      endOf(longest, bench) > span.start &&
      !mayOverlap(longest, span, lives, bench)
    ) {
      bench.violations.push({
        oracle: 'O2',
        figure: 'double_owner',
        jobId: span.jobId,
        says: `attempt ${span.attempt} started while attempt ${longest.attempt} ran under a lease that held`,
      })
    }
    if (longest === undefined || endOf(span, bench) >= endOf(longest, bench)) longest = span
  }
}

/** A call that could not write its end any more ended with its process, or when its abort was reported. */
function endOf({ end, pid, jobId, attempt }: Span, { deaths, outcomes }: Bench): number {
  if (end !== undefined) return end.at
  const outcome = outcomes.get(`${jobId}/${attempt}`)?.outcome
  const wasAborted = outcome !== undefined && ABORTED.includes(outcome)
  return wasAborted ? Number.NEGATIVE_INFINITY : (deaths.get(pid) ?? Number.POSITIVE_INFINITY)
}

const ABORTED = ['timed_out', 'cancelled', 'handed_back', 'lost']

function mayOverlap(first: Span, second: Span, lives: Lives, bench: Bench): boolean {
  const { history, leases, deaths, outcomes } = bench
  // Whoever was stopped between his last look at the lease and his handler comes late, is told so and is fenced.
  const late = lives.claims.get(`${second.jobId}/${second.attempt}`)
  if (
    late?.end !== undefined &&
    late.end.at < second.start &&
    wasLost(outcomes.get(`${second.jobId}/${second.attempt}`)) &&
    !leases.heldAt(late.workerId, second.start)
  )
    return true
  const claim = lives.claims.get(`${first.jobId}/${first.attempt}`)
  if (claim === undefined) return false
  // A deaf handler's slot stays taken, its outcome is refused; what a session did that is gone was rolled back.
  if (history.deaf.includes(claim.kind) || wasCutOff(claim, second.start)) return true
  if ((deaths.get(first.pid) ?? Number.POSITIVE_INFINITY) <= second.start) return true
  return !leases.heldAt(claim.workerId, second.start)
}

/** With a worker whose lease was over; one that was to be cancelled is called that. */
function wasLost(attempt: { readonly outcome: string; readonly cause: string | null } | undefined): boolean {
  return attempt?.outcome === 'lost' || (attempt?.outcome === 'cancelled' && attempt.cause === 'lease_lost')
}

/** Its handler's session had ended: whatever it goes on to do cannot commit. */
function wasCutOff({ end }: Claim, at = Number.POSITIVE_INFINITY): boolean {
  return end?.isSessionGone === true && end.at <= at
}

function wasClaimed(span: Span, claim: Claim | undefined, { leases, outcomes, violations }: Bench): void {
  const { jobId, attempt, pid, start } = span
  const add = (says: string) => void violations.push({ oracle: 'O4', figure: 'double_owner', jobId, says })
  if (claim === undefined) {
    add(`attempt ${attempt} started and was never claimed`)
    return
  }
  const owner = leases.pidOf(claim.workerId)
  if (owner !== undefined && owner !== null && owner !== pid) {
    add(`attempt ${attempt} ran in process ${pid}, but process ${owner} had claimed it`)
  }
  if (start < claim.at) add(`attempt ${attempt} started before its claim`)
  const ended = outcomes.get(`${jobId}/${attempt}`)
  // A process that was stopped between its last look at the lease and its handler starts late, and is fenced.
  if (claim.end !== undefined && start > claim.end.at && !wasLost(ended)) {
    add(`attempt ${attempt} started after its end (${ended?.outcome ?? claim.end.to})`)
  }
}

function underLease({ jobId, attempt, workerId, claimedAt, at }: Claim, { leases, violations }: Bench): void {
  if (leases.heldAt(workerId, claimedAt, at)) return
  const says = `attempt ${attempt} was claimed under a lease that was over`
  violations.push({ oracle: 'O2', figure: 'double_owner', jobId, says })
}

/** An attempt ends by the word of its own handler, or because its lease was over or its session gone. */
function endedByOwner(claim: Claim, span: Span | undefined, bench: Bench): void {
  const { end, jobId, attempt, kind } = claim
  if (end === undefined) return
  const { history, outcomes, leases, violations } = bench
  const add = (says: string) => void violations.push({ oracle: 'O2', figure: 'double_owner', jobId, says })
  const outcome = end.to === 'done' ? 'done' : outcomes.get(`${jobId}/${attempt}`)?.outcome
  if (outcome === undefined) {
    add(`attempt ${attempt} ended as ${end.to} and is not on record`)
    return
  }
  if (outcome === 'lost') {
    if (!wasCutOff(claim) && leases.heldAt(claim.workerId, end.at)) {
      add(`attempt ${attempt} was taken from a worker whose lease held`)
    }
    return
  }
  // A worker that misses the session says itself that the attempt is lost, whatever its handler goes on to do.
  if (ABORTED.includes(outcome) || (outcome === 'failed' && wasCutOff(claim))) return
  const said = span?.end !== undefined && span.end.at <= end.at ? span.end.how : undefined
  const words: readonly (How | null | undefined)[] = history.transactional.includes(kind)
    ? ['threw', 'returned', 'aborted', 'snoozed']
    : (WORDS[outcome] ?? [])
  if (!words?.includes(said)) {
    add(`attempt ${attempt} was ended as ${outcome}, but its handler ${said ?? 'had not ended'}`)
  }
}

const WORDS: Readonly<Record<string, readonly How[]>> = {
  done: ['returned'],
  failed: ['threw', 'aborted'],
  snoozed: ['snoozed'],
}
