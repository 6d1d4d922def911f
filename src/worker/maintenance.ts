// What one worker at a time does for all: reap, sweep, make and drop days, report kinds that nobody handles.

import type { Database } from '../engine/database.ts'
import { dropDueDays } from '../engine/drop-days.ts'
import { makeDays, type Reaped, reap, sweep, unhandledKinds } from '../engine/maintain.ts'
import { LIMITS } from '../ground/limits.ts'
import { errorFields, type Logger } from './log.ts'
import { Loop } from './loop.ts'

export interface MaintenanceOptions {
  readonly database: Database
  readonly everyMs: number
  readonly timeoutMs: number
  readonly logger: Logger
  /** Not heard by LISTEN although it was asked for: a transaction pooler may stand in between. */
  readonly isPooled: () => boolean
  readonly onReaped: (jobs: readonly Reaped[]) => void
  readonly onError: (error: unknown) => void
}

const DAYS_EVERY_MS = 10 * 60_000
const UNHANDLED_EVERY_MS = 60_000
const NEVER_MS = 2 ** 31 - 1

/** The loop that maintains while this worker is on duty. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  readonly #loop: Loop
  #dutyAt = Number.POSITIVE_INFINITY
  #daysAt = 0
  #unhandledAt = 0
  #isStopping = false
  readonly #reported = new Set<string>()

  constructor(options: MaintenanceOptions) {
    this.#options = options
    this.#loop = new Loop({
      run: () => this.#round(),
      everyMs: options.everyMs,
      errorMaxMs: LIMITS.restartMaxMs.default,
      onError: options.onError,
    })
  }

  start(): void {
    this.#isStopping = false
    this.#loop.start()
  }

  stop(): Promise<void> {
    this.#isStopping = true
    return this.#loop.stop()
  }

  /** The heartbeat says when this worker is on duty: 0 now, else when the leases of all elder ones would be over. */
  setDuty(inMs: number): void {
    const wasOnDuty = this.#isOnDuty
    this.#dutyAt = performance.now() + inMs
    if (inMs <= 0 ? !wasOnDuty : true) this.#loop.nudge()
  }

  /** No lease, no duty. */
  leave(): void {
    this.#dutyAt = Number.POSITIVE_INFINITY
  }

  get #isOnDuty(): boolean {
    return performance.now() >= this.#dutyAt
  }

  async #round(): Promise<number> {
    if (!this.#isOnDuty) return Math.min(NEVER_MS, this.#dutyAt - performance.now() + 1)
    await this.runOnce()
    return this.#options.everyMs
  }

  /** Everything that is due, whoever is on duty. A fault of one part does not keep the others from being done. */
  async runOnce(): Promise<void> {
    await this.#reap()
    const now = performance.now()
    await this.#try(() => this.#sweep())
    if (now >= this.#daysAt) {
      this.#daysAt = now + DAYS_EVERY_MS
      await this.#try(() => this.#turnDays())
    }
    if (now >= this.#unhandledAt) {
      this.#unhandledAt = now + UNHANDLED_EVERY_MS
      await this.#try(() => this.#reportUnhandled())
    }
  }

  async #try(part: () => Promise<void>): Promise<void> {
    if (this.#isStopping) return
    try {
      await part()
    } catch (error) {
      this.#options.onError(error)
    }
  }

  async #reap(): Promise<void> {
    const { database, timeoutMs, onReaped } = this.#options
    const limit = LIMITS.maintenanceJobs.default
    while (!this.#isStopping) {
      const jobs = await reap(database, limit, timeoutMs)
      if (jobs.length > 0) onReaped(jobs)
      if (jobs.length < limit) return
    }
  }

  async #sweep(): Promise<void> {
    const { database, timeoutMs } = this.#options
    const limit = LIMITS.maintenanceJobs.default
    while (!this.#isStopping) {
      const done = await sweep(database, limit, timeoutMs)
      if (Math.max(done.expired, done.cancelled, done.keys, done.audit) < limit) return
    }
  }

  async #turnDays(): Promise<void> {
    const { database, timeoutMs, logger, isPooled } = this.#options
    await makeDays(database, timeoutMs)
    try {
      const dropped = await dropDueDays(database, isPooled())
      if (dropped.length > 0) logger.info({ days: dropped }, 'dropped days of history')
    } catch (error) {
      // Only the owner of the tables may drop their days; everything else goes on without it.
      logger.warn(errorFields(error), 'days of history are due and could not be dropped')
    }
  }

  async #reportUnhandled(): Promise<void> {
    const { database, timeoutMs, logger } = this.#options
    const found = await unhandledKinds(database, timeoutMs)
    const now = new Set(found.map(({ queue, kind }) => `${queue}\u0000${kind}`))
    for (const known of this.#reported) if (!now.has(known)) this.#reported.delete(known)
    for (const { queue, kind, due_since } of found) {
      const key = `${queue}\u0000${kind}`
      if (this.#reported.has(key)) continue
      this.#reported.add(key)
      logger.warn({ queue, kind, dueSince: due_since }, 'jobs wait and no living worker handles their kind')
    }
  }
}
