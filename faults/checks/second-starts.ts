// How soon what a killed worker ran is started again, by another. Judged where nothing else was being broken meanwhile,
// and it stood behind few others: what several faults at once may cost, the bound of the drain says.

import type { History, Violation } from '../history.ts'
import { leasesOf } from './leases.ts'
import type { Lives } from './walk.ts'

/** A job that lost its worker for the first time, and its next start. */
export interface SecondStart {
  readonly jobId: string
  /** The one that was lost. */
  readonly attempt: number
  /** From the SIGKILL to the start of the handler. Unit: ms. */
  readonly tookMs: number
  /** Nothing else was broken from the SIGKILL until it had to start, and there was room for it. */
  readonly isAlone: boolean
}

/** So many jobs of its queue that were claimed since it was given back had been due before it: a backlog. */
const BACKLOG = 10

/**
 * Find them. A job that was lost before may be what takes workers down, and waits to run alone: it is no case of these;
 * nor is one that ended without another start, called off or out of failures.
 */
export function secondStarts(history: History, lives: Lives): SecondStart[] {
  const { deaths, attempts, ledger, leases } = history
  const died = new Map(deaths.map(({ pid, at }) => [pid, at]))
  const { pidOf } = leasesOf(leases)
  const lost = new Map<string, number>()
  for (const { jobId, attempt, outcome } of attempts) {
    if (outcome === 'lost') lost.set(jobId, Math.min(attempt, lost.get(jobId) ?? attempt))
  }
  const starts = new Map<string, { readonly attempt: number; readonly at: number }[]>()
  for (const { jobId, attempt, phase, at } of ledger) {
    if (phase !== 'start' || !lost.has(jobId)) continue
    starts.set(jobId, [...(starts.get(jobId) ?? []), { attempt, at }])
  }
  return [...lost].flatMap(([jobId, attempt]): SecondStart[] => {
    const pid = pidOf(lives.claims.get(`${jobId}/${attempt}`)?.workerId ?? '')
    const killedAt = died.get(pid ?? Number.NaN)
    const own = starts.get(jobId) ?? []
    const began = own.find((start) => start.attempt === attempt)?.at
    const next = own.filter((start) => start.attempt > attempt).map(({ at }) => at)
    if (killedAt === undefined || began === undefined || began > killedAt || next.length === 0) return []
    const at = Math.min(...next)
    const isAlone = !isDisturbed(history, pid!, killedAt) && !isCrowded(lives, jobId, attempt, at)
    return [{ jobId, attempt, tookMs: Math.round(at - killedAt), isAlone }]
  })
}

function isDisturbed({ acts = [], deaths, secondStartMs = 0 }: History, pid: number, from: number): boolean {
  const to = from + secondStartMs
  return (
    deaths.some((death) => death.pid !== pid && death.at >= from && death.at <= to) ||
    // The kill itself is a death.
    acts.some((act) => act.fault !== 'kill' && act.from <= to && act.to >= from)
  )
}

function isCrowded({ claims }: Lives, jobId: string, attempt: number, until: number): boolean {
  const { queue, end } = claims.get(`${jobId}/${attempt}`)!
  let others = 0
  for (const claim of claims.values()) {
    if (claim.queue === queue && claim.at > (end?.at ?? until) && claim.at < until) others++
  }
  return others > BACKLOG
}

/** Each must have come within its bound. */
export function late(history: History, lives: Lives): Violation[] {
  const { secondStartMs } = history
  if (secondStartMs === undefined) return []
  return secondStarts(history, lives)
    .filter(({ isAlone, tookMs }) => isAlone && tookMs > secondStartMs)
    .map(({ jobId, attempt, tookMs }) => ({
      oracle: 'O6',
      figure: 'late_starts',
      jobId,
      says: `attempt ${attempt} was killed with its worker; the next started after ${tookMs} ms, of ${secondStartMs}`,
    }))
}
