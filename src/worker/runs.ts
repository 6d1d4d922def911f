// All jobs that run in this process: found by id, told to stop, watched for their deadlines by one timer.

import type { StartedJob } from '../engine/lease.ts'
import type { AbortCause } from './aborted.ts'
import type { Run } from './run.ts'

const TICK_MS = 50

export interface Watch {
  readonly abortGraceMs: number
  /** A handler ignored its signal for so long. */
  readonly onDeaf: (run: Run) => void
}

/** The running jobs of a process, and the watch over their time. */
export class Runs {
  readonly #runs = new Set<Run>()
  readonly #watch: Watch
  #timer: NodeJS.Timeout | undefined
  #waiters: (() => void)[] = []
  #stopped = false

  constructor(watch: Watch) {
    this.#watch = watch
  }

  get size(): number {
    return this.#runs.size
  }

  /** Those whose outcome is still open. */
  get open(): Run[] {
    return [...this.#runs].filter((run) => !run.reported)
  }

  add(run: Run): void {
    this.#runs.add(run)
    if (!this.#stopped) this.#timer ??= setInterval(() => this.check(), TICK_MS)
  }

  remove(run: Run): void {
    this.#runs.delete(run)
    if (this.#runs.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    this.#settle()
  }

  abort(id: string, cause: AbortCause, detail?: string): void {
    for (const run of this.#runs) if (run.job.id === id) run.abort(cause, detail)
  }

  abortAll(cause: AbortCause): void {
    for (const run of this.#runs) run.abort(cause)
  }

  /** Resolves when no outcome is open any more. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
      this.#settle()
    })
  }

  /** The database knows by now that these have started. */
  told(jobs: readonly StartedJob[]): void {
    const known = new Set(jobs.map((job) => key(job.id, job.claim_id)))
    for (const run of this.#runs) if (known.has(key(run.job.id, run.job.claimId))) run.told = true
  }

  has(id: string, claimId: string): boolean {
    for (const { job } of this.#runs) if (job.id === id && job.claimId === claimId) return true
    return false
  }

  /** Watch no longer: handlers that never end must not keep the process alive. */
  stop(): void {
    this.#stopped = true
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Deadlines and deaf handlers. */
  check(): void {
    const now = performance.now()
    for (const run of this.#runs) {
      if (run.reported) continue
      if (run.abortedAt === undefined) {
        if (now >= run.deadlineAt) run.abort('timeout')
        continue
      }
      // Asked to stop by a person, a handler is waited for as long as the job may take.
      const since = run.abortCause === 'cancelled' ? Math.max(run.abortedAt, run.deadlineAt) : run.abortedAt
      if (now < since + this.#watch.abortGraceMs) continue
      run.stuck = true
      this.#watch.onDeaf(run)
      this.#settle()
    }
  }

  #settle(): void {
    if (this.#waiters.length === 0 || this.open.length > 0) return
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}

const key = (id: string, claimId: string): string => `${id} ${claimId}`
