// The worker processes: who they are, what they serve, and how they fare.

import type { Place } from './look.ts'
import { namedRows } from './named.ts'

/** How a worker serves one queue, as its last beat told it. */
export interface WorkerQueue {
  /** Handlers that may run at once. */
  readonly concurrency?: number
  readonly prefetch?: number
  readonly running?: number
  /** Of these, the handlers that ignored their signal. */
  readonly stuck?: number
  readonly prefetched?: number
  /** What ended in the last minute. */
  readonly done?: number
  readonly failed?: number
  readonly retried?: number
}

/** A worker process, as its last beat told of it. */
export interface WorkerRow {
  readonly id: string
  readonly name: string
  readonly release: string
  readonly pid: number | null
  readonly startedAt: Date
  readonly beatAt: Date
  readonly expiresAt: Date
  /** Its lease holds. */
  readonly isAlive: boolean
  /** Unit: ms. */
  readonly leaseMs: number
  readonly queues: Readonly<Record<string, WorkerQueue>>
  readonly kinds: readonly string[]
  /** What the database gave it, those that still wait for a slot among them. */
  readonly jobs: number
  /** Handlers that run, the stuck ones among them. */
  readonly running: number
  readonly prefetched: number
  /** Handlers that may run at once. */
  readonly slots: number
  /** Handlers that ignored their signal and still hold their slot. */
  readonly stuck: number
  readonly draining: boolean
  /** LISTEN is proven to bring notices. */
  readonly listening: boolean
  /** Of the event loop, the worst of its last beat. Unit: ms. */
  readonly lagMs: number
}

/** The eldest first. Source: sql/functions/workers.sql */
export async function workers(place: Place): Promise<WorkerRow[]> {
  const query = `
    select w.id, w.name, w.release, w.pid, w.started_at, w.beat_at, w.expires_at, w.is_alive,
           rowlock.length_ms(w.lease) as lease_ms, w.queues, w.kinds, w.jobs, w.running, w.prefetched, w.slots,
           w.stuck, w.draining, w.listening, w.lag_ms
      from rowlock.workers() as w`
  return namedRows<WorkerRow>(place, query, [])
}
