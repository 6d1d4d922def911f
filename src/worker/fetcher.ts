// Fills the slots: one claim for all queues with room, and sleep without losing a wake-up.

import { type Claim, claim, type Want } from '../engine/claim.ts'
import type { Database } from '../engine/database.ts'
import { sleep } from '../engine/lease.ts'
import { isPassing } from '../engine/translate.ts'
import { isRowlockError } from '../ground/errors.ts'
import type { Frontier } from './frontier.ts'
import type { Lease } from './lease.ts'
import { Loop } from './loop.ts'
import type { Orphans } from './orphans.ts'
import type { Slots } from './slots.ts'

export interface FetcherOptions {
  readonly database: Database
  readonly lease: Lease
  readonly slots: Slots
  readonly frontier: Frontier
  readonly orphans: Orphans
  readonly pollMs: number
  readonly pollListeningMs: number
  readonly timeoutMs: number
  /** Whether notices are heard. */
  readonly isListening: () => boolean
  /** Whether nothing may be claimed now: outcomes pile up, or the worker drains. */
  readonly isHeld: () => boolean
  readonly onClaim: (claimed: Claim) => void
  readonly onError: (error: unknown) => void
}

const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 100
const NAP_MS = 10
/** A flag outlives the sleep it announces by this much. */
const FLAG_SLACK_MS = 5_000

/** The loop that claims: looks while there is room, raises flags before it sleeps, wakes at notices. */
export class Fetcher {
  readonly #options: FetcherOptions
  readonly #loop: Loop
  /** Queues on which this worker's flag is up. */
  readonly #flags = new Set<string>()
  #flagsOf: string | undefined
  /** The database's clock at the last claim. It can step back, and then older jobs come behind the frontier. */
  #nowMs = Number.NEGATIVE_INFINITY
  /** Flags went up and some transaction may not have seen them: until `mark` is passed, the worker keeps looking. */
  #settling: { mark: number | undefined; pauseMs: number } | undefined
  /** When to look for work unless somebody nudges. Unit: ms of the monotonic clock. */
  #lookDueAt = 0
  #isNudged = false

  constructor(options: FetcherOptions) {
    this.#options = options
    this.#loop = new Loop({
      run: () => this.#round(),
      everyMs: options.pollMs,
      errorMaxMs: 5_000,
      onError: (error) => {
        options.frontier.drop()
        options.onError(error)
      },
    })
  }

  start(): void {
    this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  /** One look. */
  runOnce(): Promise<number | undefined> {
    this.#isNudged = true
    return this.#loop.runOnce()
  }

  /** There may be something to claim: a slot is free, outcomes were written, the lease was granted. */
  nudge(): void {
    this.#isNudged = true
    this.#loop.nudge()
  }

  /** A notice for this queue. */
  wake(queue: string): void {
    if (!this.#options.slots.hasRoom(queue)) return
    this.#options.frontier.drop()
    this.nudge()
  }

  /** Forget what is known of the database: the connection or the identity is another. */
  reset(): void {
    this.#flags.clear()
    this.#settling = undefined
    this.#options.frontier.drop()
    this.#isNudged = true
    this.#loop.nudge(true)
  }

  /** A look for work when it is due or asked for. Woken before that for lost claims alone, it claims nothing. */
  async #round(): Promise<number> {
    const { lease, orphans } = this.#options
    if (lease.workerId !== undefined && !this.#isNudged && performance.now() < this.#lookDueAt) {
      await orphans.lookIfDue(lease.workerId)
    } else {
      // Whoever nudges from here on, or a failure, makes the next round look.
      this.#isNudged = false
      this.#lookDueAt = 0
      const nextMs = await this.#look()
      this.#lookDueAt = performance.now() + nextMs
    }
    const leftMs = Math.max(0, this.#lookDueAt - performance.now())
    return lease.workerId === undefined ? leftMs : Math.min(leftMs, orphans.dueInMs)
  }

  async #look(): Promise<number> {
    const { lease, slots, frontier, orphans, isHeld, onClaim } = this.#options
    const workerId = lease.workerId
    if (workerId === undefined) return this.#pollMs()
    await orphans.lookIfDue(workerId)
    if (isHeld()) return this.#pollMs()
    if (this.#flagsOf !== workerId) {
      this.#flags.clear()
      this.#settling = undefined
      this.#flagsOf = workerId
    }
    const wanted = slots.wants()
    if (wanted.length === 0) return this.#pollMs()

    const wants = wanted.map((want) => this.#withFrontier(want))
    const wasFull = wants.every(({ from }) => from === undefined)
    const claimed = await this.#claim(workerId, wants)
    if (claimed === null) return this.#pollMs()
    if (claimed.nowMs < this.#nowMs) frontier.drop()
    this.#nowMs = claimed.nowMs
    frontier.note(claimed.jobs, wasFull, claimed.lookedMs, performance.now())
    slots.note(wanted, claimed)
    for (const queue of Object.keys(claimed.found)) this.#flags.delete(queue)
    if (claimed.jobs.length > 0) {
      if (lease.workerId === workerId) onClaim(claimed)
      // A short claim is no proof of emptiness. Where as many run as may, the end of one is waited for.
      return claimed.isFull ? this.#untilDue(claimed, this.#pollMs()) : 0
    }
    if (!wasFull) {
      frontier.drop()
      return 0
    }
    // Whoever looks again so soon misses nothing: it needs no flags. So it is where another claim has a limited queue.
    const napMs = this.#untilDue(claimed, this.#pollMs())
    if (napMs <= NAP_MS) return napMs
    return this.#rest(workerId, wants, claimed)
  }

  /** Nothing was found: raise the flags, look until they are sure to be seen, then sleep. */
  async #rest(workerId: string, wants: readonly Want[], seen: Claim): Promise<number> {
    if (this.#options.isListening()) {
      const bare = wants.map(({ queue }) => queue).filter((queue) => !this.#flags.has(queue))
      if (bare.length > 0) {
        const { database, timeoutMs } = this.#options
        await sleep(database, workerId, bare, this.#flagMs(), timeoutMs)
        for (const queue of bare) this.#flags.add(queue)
        this.#settling = { mark: undefined, pauseMs: FIRST_PAUSE_MS }
        return 0
      }
      if (this.#settling !== undefined) {
        // The first look after the commit of the flags sets the mark; the flags are seen by whoever is not older.
        this.#settling.mark ??= seen.xmax
        if (seen.xmin < this.#settling.mark) {
          const { pauseMs } = this.#settling
          this.#settling.pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
          return this.#untilDue(seen, pauseMs)
        }
        this.#settling = undefined
      }
    } else {
      this.#flags.clear()
      this.#settling = undefined
    }
    return this.#untilDue(seen, this.#pollMs())
  }

  async #claim(workerId: string, wants: readonly Want[]): Promise<Claim | null> {
    const { database, lease, timeoutMs } = this.#options
    try {
      const sleepingMs = this.#flags.size > 0 ? this.#flagMs() : null
      return await claim(database, workerId, wants, sleepingMs, timeoutMs)
    } catch (error) {
      // Where the server is another now, what it had acknowledged may be gone: so also when nothing was sent.
      if (isPassing(error)) this.#options.orphans.doubt()
      if (!isRowlockError(error, 'LEASE_LOST')) throw error
      if (lease.lastWorkerId === workerId) lease.lose()
      return null
    }
  }

  #withFrontier(want: Want): Want {
    const from = this.#options.frontier.from(want.queue, performance.now())
    return from === undefined ? want : { ...want, from }
  }

  #untilDue(seen: Claim, ms: number): number {
    if (seen.nextDueMs === null) return ms
    // Instants are rounded down to the millisecond.
    return Math.min(ms, Math.max(1, seen.nextDueMs - seen.nowMs + 1))
  }

  #pollMs(): number {
    const { isListening, pollMs, pollListeningMs } = this.#options
    const ms = isListening() ? Math.max(pollMs, pollListeningMs) : pollMs
    return ms * (0.8 + Math.random() * 0.4)
  }

  #flagMs(): number {
    return this.#options.pollListeningMs * 1.2 + FLAG_SLACK_MS
  }
}
