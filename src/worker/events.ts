// What a worker tells of itself.

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
  readonly state: 'new' | 'starting' | 'running' | 'draining' | 'stopped'
  readonly workerId: string | null
  readonly listening: boolean
  readonly running: number
  readonly prefetched: number
  readonly stuck: number
  /** Event-loop lag, the worst of the last heartbeat. Unit: ms. */
  readonly lagMs: number
}

/** How to stop. */
export interface StopOptions {
  /** Default: the worker's `grace`. 0 aborts at once. Unit: ms. */
  readonly graceMs?: number
}
