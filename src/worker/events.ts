// What a worker tells of itself.

import type { Duration } from '../ground/duration.ts'

/** What a worker tells those who listen. */
export interface WorkerEvents {
  /** The lease was granted, at the start or after a loss. */
  leased: [{ readonly workerId: string }]
  /** The lease could not be proven: all handlers were aborted. */
  lease_lost: [{ readonly workerId: string }]
  /** An outcome came too late: the job had another owner. */
  outcome_lost: [{ readonly jobId: string; readonly verb: string }]
  /** A handler ignored its signal. */
  stuck: [{ readonly jobId: string; readonly kind: string; readonly stuck: number }]
  /** Jobs of lost workers were given back by this one. */
  reaped: [{ readonly jobs: readonly { readonly id: string; readonly to: string }[] }]
  /** Notices are heard, or no longer. */
  listening: [{ readonly proven: boolean }]
  /** The worker has ended; `fit` is false when too many handlers were stuck: let the supervisor start another. */
  stopped: [{ readonly fit: boolean }]
}

/** What a worker is like at this moment. */
export interface WorkerStatus {
  /** Where it is between `start()` and the end of `stop()`; a worker that has stopped does not start again. */
  readonly state: 'new' | 'starting' | 'running' | 'draining' | 'stopped'
  /** Its identity while it holds a lease, else null. A lost lease brings another one. */
  readonly workerId: string | null
  /** Whether LISTEN is proven to bring notices; while it is not, the worker polls every `poll`. */
  readonly listening: boolean
  /** Handlers that run now, the stuck ones among them. Unit: jobs. */
  readonly running: number
  /** Jobs claimed ahead that wait for a free slot. Unit: jobs. */
  readonly prefetched: number
  /** Handlers that ignored their signal and still hold their slot. Unit: jobs. */
  readonly stuck: number
  /** Event-loop lag, the worst of the last heartbeat. Unit: ms. */
  readonly lagMs: number
}

/** How to stop. */
export interface StopOptions {
  /** Default: the worker's `grace`. 0 aborts at once. */
  readonly grace?: Duration | undefined
}
