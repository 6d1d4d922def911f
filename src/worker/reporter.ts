// Sends the outcomes of jobs in batches: after a few milliseconds, or as soon as the one before has been answered.

import type { Database } from '../engine/database.ts'
import { finish, type Outcome } from '../engine/finish.ts'
import { wereCompleted } from '../engine/were-completed.ts'
import { RowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'

export interface ReporterOptions {
  readonly database: Database
  readonly flushMs: number
  readonly timeoutMs: number
  /** A job had another owner when its outcome came. */
  readonly onLost: (outcome: Outcome) => void
  readonly onError: (error: unknown) => void
  /** Outcomes were written: there is room again. */
  readonly onFlushed: () => void
}

/** SQLSTATE classes that say: this very outcome cannot be written. Everything else is tried again, for ever. */
const REFUSED = /^(22|23)/
const REFUSED_AGAIN_MS = 5_000

export class Reporter {
  readonly #options: ReporterOptions
  #pending: Outcome[] = []
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #waiters: (() => void)[] = []
  #stopped = false
  #wake: (() => void) | undefined

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** Backpressure: while outcomes pile up, nothing more is claimed. */
  get isFull(): boolean {
    return this.#pending.length >= LIMITS.flushJobs.max * 2
  }

  get open(): number {
    return this.#pending.length + (this.#flushing === undefined ? 0 : 1)
  }

  report(outcome: Outcome): void {
    this.#pending.push(outcome)
    if (this.#flushing !== undefined || this.#stopped) return
    if (this.#pending.length >= LIMITS.flushJobs.max) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs)
  }

  /** Resolves when everything reported so far has been answered, or given up by `stop`. */
  flushed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
      if (this.#pending.length > 0 && this.#flushing === undefined && !this.#stopped) this.#flush()
      this.#settle()
    })
  }

  /** Give up what could not be written: the leases will say what becomes of it. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#wake?.()
    this.#settle()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#flushing !== undefined || this.#pending.length === 0) return
    const batch = this.#pending.splice(0, LIMITS.flushJobs.max)
    this.#flushing = this.#send(batch)
      .catch((error) => this.#options.onError(error))
      .finally(() => {
        this.#flushing = undefined
        this.#options.onFlushed()
        if (this.#pending.length > 0 && !this.#stopped) this.#flush()
        this.#settle()
      })
  }

  /** The same batch until it is answered: each outcome names its claim, so that a repeat does no harm. */
  async #send(batch: readonly Outcome[]): Promise<void> {
    let unknown = false
    for (let tries = 1; !this.#stopped; tries++) {
      try {
        const { completed, moved } = await finish(this.#options.database, batch, this.#options.timeoutMs)
        const settled = new Set([...completed, ...moved.map(({ id }) => id)])
        const missing = batch.filter(({ id }) => !settled.has(id))
        await this.#explain(missing, unknown)
        return
      } catch (error) {
        if (isRefusal(error)) return this.#divide(batch, error)
        unknown = true
        this.#options.onError(error)
        await this.#pause(Math.min(5_000, 50 * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2))
      }
    }
  }

  /** After a lost answer, jobs that are missing now may be those that the lost answer was about. */
  async #explain(missing: readonly Outcome[], unknown: boolean): Promise<void> {
    if (missing.length === 0) return
    const done = unknown
      ? await wereCompleted(
          this.#options.database,
          missing.map(({ id }) => id),
        ).catch(() => new Set())
      : new Set()
    for (const outcome of missing) if (!done.has(outcome.id)) this.#options.onLost(outcome)
  }

  /** One outcome that the server refuses must not hold up the others. */
  async #divide(batch: readonly Outcome[], error: unknown): Promise<void> {
    if (batch.length > 1) {
      const half = batch.length >> 1
      await this.#send(batch.slice(0, half))
      await this.#send(batch.slice(half))
      return
    }
    this.#options.onError(error)
    const [outcome] = batch
    if (outcome === undefined) return
    if (outcome.verb === 'fail' && outcome.cause === 'outcome_refused') {
      // Something in the database refuses even that: it is tried again, and the others go on.
      setTimeout(() => this.report(outcome), REFUSED_AGAIN_MS).unref()
      return
    }
    const { id, claim_id, ran_ms } = outcome
    await this.#send([
      {
        verb: 'fail',
        id,
        claim_id,
        ...(ran_ms !== undefined && { ran_ms }),
        outcome: 'failed',
        cause: 'outcome_refused',
        error: { name: 'OutcomeRefused', message: `the database refused the outcome (${outcome.verb})` },
      },
    ])
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms)
      this.#wake = done
      function done(): void {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #settle(): void {
    if (!this.#stopped && this.open > 0) return
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}

function isRefusal(error: unknown): boolean {
  if (error instanceof RowlockError) return false
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && REFUSED.test(code)
}
