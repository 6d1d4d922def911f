// Finds jobs that the database holds for this worker and that this process knows nothing of: the answer of a claim was
// lost, or the server has gone back to before an outcome (a failover to a standby that was behind, a crash where
// commits do not wait for the disk). While the worker lives, its lease would keep them for ever.

import type { Database } from '../engine/database.ts'
import { heldJobs } from '../engine/lease.ts'

/** A job under the claim that took it. */
export interface HeldJob {
  readonly id: string
  readonly claimId: string
  readonly attempt: number
  /** A session of ours was in a transaction for it. */
  readonly inTransaction?: boolean
}

export interface OrphansOptions {
  readonly database: Database
  readonly timeoutMs: number
  /** A lost claim may still be on its way for so long. */
  readonly doubtMs: number
  /** How often without a reason, as the net: by nothing else does a worker notice that a server went back in time. */
  readonly everyMs: number
  readonly isKnown: (job: HeldJob) => boolean
  readonly onFound: (jobs: readonly HeldJob[]) => void
}

/** How often, after an answer was lost. */
const DOUBTFUL_EVERY_MS = 1_000

/** Compares what the database says this worker holds with what the process knows. */
export class Orphans {
  readonly #options: OrphansOptions
  #doubtUntil = 0
  #lookedAt = performance.now()

  constructor(options: OrphansOptions) {
    this.#options = options
  }

  /** The answer of a claim was lost, or the server was. */
  doubt(): void {
    this.#doubtUntil = performance.now() + this.#options.doubtMs
    this.#lookedAt = Number.NEGATIVE_INFINITY
  }

  /** When the next look is needed. Unit: ms. */
  get dueInMs(): number {
    return Math.max(1, this.#lookedAt + this.#everyMs - performance.now())
  }

  /** Never while a claim is in flight here: what it takes would look like an orphan. */
  async lookIfDue(workerId: string): Promise<void> {
    if (performance.now() < this.#lookedAt + this.#everyMs) return
    await this.runOnce(workerId)
  }

  async runOnce(workerId: string): Promise<void> {
    const lookedAt = performance.now()
    const first = await this.#unknown(workerId)
    // What ended while the answer was on its way is no longer known, and by the next look no longer held.
    const claims = new Set(first.map(({ claimId, id }) => `${claimId} ${id}`))
    const both = first.length === 0 ? [] : await this.#unknown(workerId)
    this.#lookedAt = lookedAt
    const orphans = both.filter(({ claimId, id }) => claims.has(`${claimId} ${id}`))
    if (orphans.length > 0) this.#options.onFound(orphans)
  }

  get #everyMs(): number {
    return this.#lookedAt < this.#doubtUntil ? DOUBTFUL_EVERY_MS : this.#options.everyMs
  }

  async #unknown(workerId: string): Promise<HeldJob[]> {
    const { database, timeoutMs, isKnown } = this.#options
    const held = await heldJobs(database, workerId, timeoutMs)
    return held.filter((job) => !isKnown(job))
  }
}
