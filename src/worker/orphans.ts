// Finds jobs that the database gave to this worker and that this process knows nothing of: the answer of a claim was
// lost. While the worker lives, its lease would keep them for ever.

import type { Database } from '../engine/database.ts'
import { heldJobs } from '../engine/lease.ts'

/** A job under the claim that took it. */
export interface HeldJob {
  readonly id: string
  readonly claimId: string
  readonly attempt: number
}

export interface OrphansOptions {
  readonly database: Database
  readonly timeoutMs: number
  /** A lost claim may still be on its way for so long. */
  readonly doubtMs: number
  readonly isKnown: (job: HeldJob) => boolean
  readonly onFound: (jobs: readonly HeldJob[]) => void
}

/** How often, after an answer was lost. */
const DOUBTFUL_EVERY_MS = 1_000
/** How often without a reason, as the net. */
const EVERY_MS = 60_000

/** Compares what the database says this worker holds with what the process knows. */
export class Orphans {
  readonly #options: OrphansOptions
  #doubtUntil = 0
  #lookedAt = performance.now()

  constructor(options: OrphansOptions) {
    this.#options = options
  }

  /** The answer of a claim was lost. */
  doubt(): void {
    this.#doubtUntil = performance.now() + this.#options.doubtMs
    this.#lookedAt = Number.NEGATIVE_INFINITY
  }

  /** When the next look is needed; infinite without a doubt: the net is cast along with other looks. Unit: ms. */
  get dueInMs(): number {
    const now = performance.now()
    const isDoubtful = this.#lookedAt < this.#doubtUntil
    return isDoubtful ? Math.max(1, this.#lookedAt + DOUBTFUL_EVERY_MS - now) : Number.POSITIVE_INFINITY
  }

  /** Never while a claim is in flight here: what it takes would look like an orphan. */
  async lookIfDue(workerId: string): Promise<void> {
    const everyMs = this.#lookedAt < this.#doubtUntil ? DOUBTFUL_EVERY_MS : EVERY_MS
    if (performance.now() < this.#lookedAt + everyMs) return
    await this.runOnce(workerId)
  }

  async runOnce(workerId: string): Promise<void> {
    const { database, timeoutMs, isKnown, onFound } = this.#options
    const lookedAt = performance.now()
    const held = await heldJobs(database, workerId, timeoutMs)
    this.#lookedAt = lookedAt
    const orphans = held.filter((job) => !isKnown(job))
    if (orphans.length > 0) onFound(orphans)
  }
}
