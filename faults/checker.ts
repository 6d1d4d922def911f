// Decides whether a history kept the promises. Pure, and linear in the history but for one sort.

import { books } from './checks/books.ts'
import { limits } from './checks/limits.ts'
import { owners } from './checks/owners.ts'
import { late } from './checks/second-starts.ts'
import { walk } from './checks/walk.ts'
import type { History, Violation } from './history.ts'

/** What should not have been, in no order; empty when all promises were kept. */
export function check(history: History): Violation[] {
  const lives = walk(history.audit)
  return [
    ...lives.violations,
    ...owners(history, lives),
    ...books(history),
    ...limits(history, lives),
    ...late(history, lives),
    ...ends(history, lives.last),
    ...rest(history),
  ]
}

/** Where the audit saw a job last is where it is. */
function ends({ jobs }: History, last: ReadonlyMap<string, string>): Violation[] {
  const found: Violation[] = []
  const states = new Map(jobs.map(({ id, state }) => [id, state]))
  if (states.size < jobs.length) {
    const seen = new Set<string>()
    for (const { id } of jobs) {
      if (seen.has(id)) {
        found.push({ oracle: 'states', figure: 'illegal_transitions', jobId: id, says: 'it is there twice' })
      }
      seen.add(id)
    }
  }
  for (const [jobId, state] of last) {
    if (states.get(jobId) === state) continue
    const says = `it was ${state} last, and is ${states.get(jobId) ?? 'nowhere'}`
    found.push({ oracle: 'O1', figure: states.has(jobId) ? 'illegal_transitions' : 'lost', jobId, says })
  }
  return found
}

/** Everything ended in time (stuck), nothing is left open (O6), nobody died unasked (O7). */
function rest({ rest: left, mishaps, jobs }: History): Violation[] {
  const found: Violation[] = []
  const open = (oracle: 'O6', figure: Violation['figure'], count: number, what: string) => {
    if (count > 0) found.push({ oracle, figure, says: `${count} ${what}` })
  }
  const ended = ['done', 'failed', 'cancelled', 'dead_letter']
  for (const { id, state } of jobs) {
    if (ended.includes(state)) continue
    found.push({ oracle: 'O6', figure: 'stuck', jobId: id, says: `it is still ${state}` })
  }
  if (!found.length && left.unfinished > 0) {
    open('O6', 'stuck', left.unfinished, 'jobs had not ended when the bound was reached, and did later')
  }
  open('O6', 'left_open', left.sessions, 'sessions are left')
  open('O6', 'left_open', left.idleInTransaction, 'sessions are idle in transaction')
  open('O6', 'left_open', left.advisoryLocks, 'advisory locks are left')
  open('O6', 'left_open', left.workers, 'workers that stopped are still registered')
  open('O6', 'left_open', left.cancelRequests, 'requests to cancel are left')
  open('O6', 'deadlocks', left.deadlocks, 'deadlocks')
  for (const says of mishaps) found.push({ oracle: 'O7', figure: 'unexpected_exits', says })
  return found
}
