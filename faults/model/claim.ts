// What a claim may take: the rules of its order, as a list of outcomes of which one must have happened. There are
// several where the order says nothing (two heads of the same age) and where the claim draws lots (suspects).

import { type ModelJob, TARGET_WAIT_MS } from './job.ts'
import type { ModelDatabase } from './queue.ts'

/** One way a claim may go. */
export interface ClaimOutcome {
  readonly taken: readonly string[]
  /** Jobs it met that were too late: cancelled on the way. */
  readonly expired: readonly string[]
  readonly alone: boolean
  readonly nextDue: number | null
}

/** A claim of one queue. */
export interface Want {
  readonly queue: string
  readonly kinds: readonly string[]
  readonly limit: number
  readonly alone: boolean
}

const byLine = (a: ModelJob, b: ModelJob) => a.availableAt - b.availableAt || Number(a.id) - Number(b.id)

/** Every way this claim may go. */
export function claimOutcomes(model: ModelDatabase, want: Want): readonly ClaimOutcome[] {
  const { now } = model
  const nothing = { taken: [], expired: [], alone: false, nextDue: null }
  if ((model.queues.get(want.queue)?.pausedAt ?? null) !== null) return [nothing]
  const waiting = model.waiting().filter(({ queue }) => queue === want.queue)
  const lines = linesOf(waiting.filter(({ kind }) => want.kinds.includes(kind)))
  const ahead = lines.map(([head]) => head!.availableAt).filter((at) => at > now)
  const nextDue = ahead.length === 0 ? null : Math.min(...ahead)
  const isTooLate = ({ expiresAt }: ModelJob) => expiresAt !== null && expiresAt <= now
  const hasSuspects = want.alone && waiting.some(({ losses }) => losses! >= 2)
  const outcomes: ClaimOutcome[] = []
  if (hasSuspects && want.limit > 0) {
    const [first] = waiting
      .filter((job) => job.losses! >= 2 && want.kinds.includes(job.kind) && !isTooLate(job))
      .filter(({ availableAt }) => availableAt <= now - TARGET_WAIT_MS)
      .sort(byLine)
    if (first !== undefined) outcomes.push({ ...nothing, taken: [first.id], alone: true, nextDue })
  }
  for (const order of ordersOf(lines)) outcomes.push({ ...walk(order), nextDue })
  return outcomes

  function walk(order: readonly (readonly ModelJob[])[]): ClaimOutcome {
    const taken: string[] = []
    const expired: string[] = []
    let left = want.limit
    for (const line of order) {
      const due = line.filter(({ availableAt }) => availableAt <= now)
      const [head] = due
      if (head === undefined || left <= 0) continue
      if (hasSuspects && taken.length === 0 && head.losses! >= 2 && !isTooLate(head)) {
        return { taken: [head.id], expired, alone: true, nextDue }
      }
      let rest = due.filter(({ losses }) => losses! < 2)
      while (left > 0 && rest.length > 0) {
        const locked = rest.slice(0, left)
        rest = rest.slice(left)
        const fit = locked.filter((job) => !isTooLate(job))
        expired.push(...locked.filter(isTooLate).map(({ id }) => id))
        taken.push(...fit.map(({ id }) => id))
        left -= fit.length
        if (fit.length === locked.length) break
      }
    }
    return { taken, expired, alone: false, nextDue }
  }
}

function linesOf(jobs: readonly ModelJob[]): ModelJob[][] {
  const lines = new Map<string, ModelJob[]>()
  for (const job of jobs) {
    const name = `${job.kind} ${job.priority}`
    lines.set(name, [...(lines.get(name) ?? []), job])
  }
  return [...lines.values()].map((line) => line.sort(byLine))
}

/** Higher priorities first, then the line whose head is older; heads of the same age in any order. */
function ordersOf(lines: readonly ModelJob[][]): ModelJob[][][] {
  if (lines.length === 0) return [[]]
  const before = (a: ModelJob, b: ModelJob) => b.priority - a.priority || a.availableAt - b.availableAt
  const first = [...lines].sort((a, b) => before(a[0]!, b[0]!))[0]!
  return lines
    .filter((line) => before(line[0]!, first[0]!) === 0)
    .flatMap((next) => ordersOf(lines.filter((line) => line !== next)).map((rest) => [next, ...rest]))
}
