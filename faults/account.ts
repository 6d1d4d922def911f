// What a run amounts to: one line of JSON, and the evidence where a figure is bad.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChaosResult } from './chaos.ts'
import { secondStarts } from './checks/second-starts.ts'
import { walk } from './checks/walk.ts'
import { FIGURES, type Figure, type Violation } from './history.ts'

/** The figures of a run. All of the bad ones are 0 when the promises were kept. */
export type Account = Readonly<Record<Figure, number>> & {
  readonly seconds: number
  readonly seed: number
  readonly enqueued: number
  readonly finished: number
  readonly faults_injected: number
  readonly [more: string]: unknown
}

const count = <T>(list: readonly T[], is: (one: T) => boolean) => list.filter(is).length

/** Count it up. */
export function accountOf(seconds: number, seed: number, result: ChaosResult): Account {
  const { history, violations, faults, drainedMs, drainLagMs, unfit } = result
  const { calls, jobs, attempts } = history
  const bad = Object.fromEntries(
    FIGURES.map((figure) => [figure, count(violations, (one) => one.figure === figure)]),
  ) as Record<Figure, number>
  const { lost, double_owner, stuck, limits_broken, unexpected_exits, ...others } = bad
  const again = secondStarts(history, walk(history.audit))
  const state = (name: string) => count(jobs, (job) => job.state === name)
  return {
    seconds,
    seed,
    enqueued: count(calls, ({ answer, created }) => answer === 'ok' && created === true),
    finished: count(jobs, (job) => ['done', 'failed', 'cancelled', 'dead_letter'].includes(job.state)),
    lost,
    double_owner,
    stuck,
    limits_broken,
    unexpected_exits,
    faults_injected: Object.values(faults).reduce((sum, times) => sum + times, 0),
    ...others,
    deduped: count(calls, ({ created }) => created === false),
    failed_calls: count(calls, ({ answer }) => answer === 'failed'),
    unknown_calls: count(calls, ({ answer }) => answer === 'unknown'),
    done: state('done'),
    failed: state('failed'),
    cancelled: state('cancelled'),
    dead_letters: state('dead_letter'),
    attempts_lost: count(attempts, ({ outcome }) => outcome === 'lost'),
    attempts_timed_out: count(attempts, ({ outcome }) => outcome === 'timed_out'),
    handed_back: count(attempts, ({ outcome }) => outcome === 'handed_back'),
    workers_killed: history.deaths.length,
    workers_unfit: unfit,
    drained_ms: drainedMs,
    drain_lag_ms: drainLagMs,
    second_starts: again.length,
    second_starts_judged: count(again, ({ isAlone }) => isAlone),
    slowest_second_start_ms: again.reduce((most, { tookMs }) => Math.max(most, tookMs), 0),
    faults,
  }
}

/** The figures that are not 0. */
export function badFigures(account: Account): Figure[] {
  return FIGURES.filter((figure) => account[figure] !== 0)
}

/** Write everything that is known of the violations below a folder; answers where. */
export function writeEvidence(folder: string, account: Account, result: ChaosResult): string {
  mkdirSync(folder, { recursive: true })
  const { history, violations } = result
  const told = violations.slice(0, 200).map((violation) => tell(violation, result))
  const { calls, operations, deaths, mishaps, rest } = history
  const known = { account, violations: told, mishaps, deaths, rest, warnings: result.warnings }
  const path = join(folder, `seed-${account.seed}.json`)
  writeFileSync(path, JSON.stringify(known, null, 1))
  writeFileSync(join(folder, `seed-${account.seed}.calls.json`), JSON.stringify({ calls, operations }))
  return path
}

/** A violation with the whole history of its job. */
function tell(violation: Violation, { history }: ChaosResult): object {
  const { jobId } = violation
  if (jobId === undefined) return violation
  const own = <T extends { readonly jobId: string }>(rows: readonly T[]) =>
    rows.filter((row) => row.jobId === jobId)
  const audit = own(history.audit)
  const owners = new Set(audit.map(({ workerId }) => workerId))
  return {
    ...violation,
    job: history.jobs.find(({ id }) => id === jobId),
    call: history.calls.filter(({ id }) => id === jobId),
    operations: history.operations.filter(({ id }) => id === jobId),
    audit,
    ledger: own(history.ledger),
    attempts: own(history.attempts),
    leases: history.leases.filter(({ workerId }) => owners.has(workerId)).slice(-60),
  }
}
