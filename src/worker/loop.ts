// The shape of every background loop: start, stop, runOnce. A run that fails comes back, with capped backoff, for ever.

/** What a loop does and when. */
export interface LoopOptions {
  /** One round. May answer when the next is due (ms); otherwise it is due after `everyMs`. */
  readonly run: () => Promise<number | undefined>
  readonly everyMs: number
  /** The longest pause after a failure. Unit: ms. */
  readonly errorMaxMs: number
  readonly onError: (error: unknown) => void
}

/** Runs one thing again and again, one round at a time, until it is stopped. */
export class Loop {
  readonly #options: LoopOptions
  #running = false
  #timer: NodeJS.Timeout | undefined
  /** A round that is due now: a timer would put it off by a millisecond. */
  #due: NodeJS.Immediate | undefined
  #inFlight: Promise<number | undefined> | undefined
  #nudged: 'lazy' | 'eager' | undefined
  #failures = 0

  constructor(options: LoopOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#running
  }

  start(): void {
    if (this.#running) return
    this.#running = true
    this.#schedule(0)
  }

  /** No round begins after this; resolves when the one in flight has ended. */
  async stop(): Promise<void> {
    this.#running = false
    this.#unschedule()
    await this.#inFlight?.catch(() => {})
  }

  /** One round now; joins the one in flight. For tests, and for whoever cannot wait. */
  runOnce(): Promise<number | undefined> {
    this.#inFlight ??= this.#options.run().finally(() => {
      this.#inFlight = undefined
    })
    return this.#inFlight
  }

  /**
   * Do not wait for the next round to be due. While one is in flight, another follows at once. After a failure the
   * pause is kept, however many nudge, unless it is known that things have changed (`isEager`).
   */
  nudge(isEager = false): void {
    if (!this.#running) return
    if (this.#inFlight !== undefined) this.#nudged = isEager ? 'eager' : (this.#nudged ?? 'lazy')
    else if (isEager || this.#failures === 0) this.#schedule(0)
  }

  #schedule(ms: number): void {
    if (ms <= 0 && this.#due !== undefined) return
    this.#unschedule()
    if (ms <= 0) this.#due = setImmediate(() => void this.#round())
    else this.#timer = setTimeout(() => void this.#round(), Math.min(ms, 2 ** 31 - 1))
  }

  #unschedule(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#due)
    this.#timer = undefined
    this.#due = undefined
  }

  async #round(): Promise<void> {
    this.#unschedule()
    let next: number
    try {
      next = (await this.runOnce()) ?? this.#options.everyMs
      this.#failures = 0
    } catch (error) {
      this.#failures++
      next =
        Math.min(this.#options.errorMaxMs, 100 * 2 ** Math.min(this.#failures, 16)) *
        (0.5 + Math.random() / 2)
      if (this.#running) this.#complain(error)
    }
    const nudged = this.#nudged
    this.#nudged = undefined
    if (!this.#running) return
    this.#schedule(nudged === 'eager' || (nudged === 'lazy' && this.#failures === 0) ? 0 : next)
  }

  #complain(error: unknown): void {
    try {
      this.#options.onError(error)
    } catch {
      // a listener that throws must not end the loop
    }
  }
}
