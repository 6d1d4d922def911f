// Sends the outcomes of jobs in batches: after a few milliseconds, or as soon as the one before has been answered.

import type { Database } from '../engine/database.ts'
import { finish, type Outcome } from '../engine/finish.ts'
import { wereWritten } from '../engine/were-written.ts'
import { RowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'

export interface ReporterOptions {
  readonly database: Database
  readonly flushMs: number
  readonly timeoutMs: number
  /** An outcome was written; `to` is the state its job went to. */
  readonly onWritten: (outcome: Outcome, to: string) => void
  /** A job had another owner when its outcome came. */
  readonly onLost: (outcome: Outcome) => void
  readonly onError: (error: unknown) => void
  /** Outcomes were written: there is room again. */
  readonly onFlushed: () => void
}

/**
 * SQLSTATE classes that say: this very outcome cannot be written (its data, a constraint, a trigger, a bound of the
 * server). Everything else is tried again, for ever: it is the moment, or a matter of all outcomes alike.
 */
const REFUSED = /^(22|23|38|39|44|54|P0)[0-9A-Z]{3}$/
const REFUSED_AGAIN_MS = 5_000
const PAUSE_MAX_MS = 5_000

/** Collects outcomes and writes them, one statement at a time. */
export class Reporter {
  readonly #options: ReporterOptions
  #pending: Outcome[] = []
  /** In the statement that is in flight, and what is left of its batch. */
  #sent: readonly Outcome[] = []
  /** Refused in every form; they come back to pending after a while. */
  readonly #refused = new Map<Outcome, NodeJS.Timeout>()
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #waiters: (() => void)[] = []
  #stopped = false
  #wake: (() => void) | undefined

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** Backpressure: while outcomes pile up, refused ones too, nothing more is claimed. So memory is bounded. */
  get isFull(): boolean {
    return this.#pending.length + this.#refused.size >= LIMITS.flushJobs.max * 2
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

  /** Is an outcome of this claim still to be written? */
  holds(id: string, claimId: string): boolean {
    const isIt = (outcome: Outcome) => outcome.id === id && outcome.claim_id === claimId
    return this.#pending.some(isIt) || this.#sent.some(isIt) || [...this.#refused.keys()].some(isIt)
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
    for (const timer of this.#refused.values()) clearTimeout(timer)
    this.#wake?.()
    this.#settle()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#flushing !== undefined || this.#pending.length === 0) return
    this.#sent = this.#pending.splice(0, batchLength(this.#pending))
    this.#flushing = this.#send(this.#sent)
      .catch((error) => this.#options.onError(error))
      .finally(() => {
        this.#flushing = undefined
        this.#sent = []
        this.#options.onFlushed()
        if (this.#pending.length > 0 && !this.#stopped) this.#flush()
        this.#settle()
      })
  }

  /** The same batch until it is answered: each outcome names its claim, so that a repeat does no harm. */
  async #send(batch: readonly Outcome[]): Promise<void> {
    let isDoubtful = false
    for (let tries = 1; !this.#stopped; tries++) {
      try {
        const { completed, moved } = await finish(this.#options.database, batch, this.#options.timeoutMs)
        const states = new Map(moved.map(({ id, to }) => [id, to]))
        for (const id of completed) states.set(id, 'done')
        const missing: Outcome[] = []
        for (const outcome of batch) {
          const to = states.get(outcome.id)
          if (to === undefined) missing.push(outcome)
          else this.#options.onWritten(outcome, to)
        }
        await this.#explain(missing, isDoubtful)
        return
      } catch (error) {
        if (isRefusal(error)) return this.#divide(batch, error)
        isDoubtful = true
        if (this.#stopped) return
        this.#options.onError(error)
        await this.#pause(Math.min(PAUSE_MAX_MS, 50 * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2))
      }
    }
  }

  /** After a lost answer, jobs that are missing now may be those that the lost answer was about. */
  async #explain(missing: readonly Outcome[], isDoubtful: boolean): Promise<void> {
    if (missing.length === 0 || this.#stopped) return
    const { database, timeoutMs, onLost, onWritten } = this.#options
    const written = isDoubtful
      ? await wereWritten(database, missing, timeoutMs).catch(() => new Set())
      : new Set()
    for (const outcome of missing) {
      if (!written.has(outcome.id)) onLost(outcome)
      else onWritten(outcome, outcome.verb === 'complete' ? 'done' : 'unknown')
    }
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
    if (outcome.verb === 'fail' && outcome.cause === 'outcome_refused') return this.#setAside(outcome)
    const { id, claim_id, attempt, queue, ran_ms } = outcome
    await this.#send([
      {
        verb: 'fail',
        id,
        claim_id,
        attempt,
        ...(queue !== undefined && { queue }),
        ...(ran_ms !== undefined && { ran_ms }),
        outcome: 'failed',
        cause: 'outcome_refused',
        error: { name: 'OutcomeRefused', message: `the database refused the outcome (${outcome.verb})` },
      },
    ])
  }

  /** Something in the database refuses even that: it is tried again, and the others go on. */
  #setAside(outcome: Outcome): void {
    if (this.#stopped) return
    const timer = setTimeout(() => {
      this.#refused.delete(outcome)
      this.report(outcome)
    }, REFUSED_AGAIN_MS)
    this.#refused.set(outcome, timer)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#wake = done
    })
  }

  #settle(): void {
    if (!this.#stopped && this.open > 0) return
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}

/** As many as one statement takes, by number and by bytes. */
function batchLength(outcomes: readonly Outcome[]): number {
  let bytes = 0
  let length = 0
  for (const outcome of outcomes) {
    bytes += bytesOf(outcome)
    if (length > 0 && (bytes > LIMITS.bytesPerCall.max || length >= LIMITS.flushJobs.max)) break
    length++
  }
  return length
}

function bytesOf(outcome: Outcome): number {
  if (outcome.verb === 'complete') return 100 + (outcome.result?.length ?? 0)
  return outcome.verb === 'fail' ? LIMITS.errorBytes.max : 100
}

function isRefusal(error: unknown): boolean {
  if (error instanceof RowlockError) return false
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && REFUSED.test(code)
}
