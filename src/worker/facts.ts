// What a worker tells the database of itself: who it is when it registers, how it fares with each beat.

import { RELEASE } from '../engine/release.ts'
import { LIMITS } from '../ground/limits.ts'
import type { WorkerStatus } from './events.ts'
import type { WorkerSettings } from './options.ts'
import type { Rates } from './rates.ts'
import type { Slots } from './slots.ts'

/** Told once, when it registers. */
export function identityOf({ name, queues, sharing, handlers }: WorkerSettings): Record<string, unknown> {
  return {
    name,
    release: RELEASE,
    queues: Object.fromEntries(
      queues.map(({ queue, concurrency, prefetch }) => [queue, { concurrency, prefetch }]),
    ),
    kinds: [...handlers.keys()],
    ...(sharing && { slots: sharing.slots }),
    timeouts: ownTimeouts(handlers),
    pid: process.pid,
    node: process.version,
  }
}

/** By kind, of those that do not have the default: else nobody could say whether a job runs too long. Unit: ms. */
function ownTimeouts(handlers: WorkerSettings['handlers']): Record<string, number> {
  const timeouts = [...handlers].map(([kind, { definition }]) => [kind, definition.timeoutMs] as const)
  return Object.fromEntries(
    timeouts.filter(
      (own): own is [string, number] => own[1] !== undefined && own[1] !== LIMITS.timeoutMs.default,
    ),
  )
}

/** Told with each beat. By queue: its slots, and what ended in the last minute. */
export function factsOf(status: WorkerStatus, slots: Slots, rates: Rates): Record<string, unknown> {
  const { state, running, prefetched, stuck, listening, lagMs } = status
  const byQueue = slots.figures().map(([queue, room]) => [queue, { ...room, ...rates.of(queue) }])
  return {
    draining: state === 'draining',
    running,
    prefetched,
    stuck,
    listening,
    lag_ms: Math.round(lagMs),
    by_queue: Object.fromEntries(byQueue),
  }
}
