// Whether this process may run what it claimed. Judged by its own monotonic clock from the moment a beat was sent,
// so that it gives up before the database does.

import { randomUUID } from 'node:crypto'

/** The right to run under one identity, until an instant of the monotonic clock. */
export class Lease {
  #workerId: string | undefined
  #until = 0
  #timer: NodeJS.Timeout | undefined
  #ended = false
  readonly #leaseMs: number
  readonly #onLost: (workerId: string) => void

  constructor(leaseMs: number, onLost: (workerId: string) => void) {
    this.#leaseMs = leaseMs
    this.#onLost = onLost
  }

  /** The identity of this process while the lease holds. A new one for each beginning. */
  get workerId(): string | undefined {
    return this.holds ? this.#workerId : undefined
  }

  /** The identity, even if its lease may be over; for those who must end it. */
  get lastWorkerId(): string | undefined {
    return this.#workerId
  }

  /** Can this process still prove its right? */
  get holds(): boolean {
    return this.#workerId !== undefined && performance.now() < this.#until
  }

  /** Unit: ms, 0 when it is over. */
  get leftMs(): number {
    return this.#workerId === undefined ? 0 : Math.max(0, this.#until - performance.now())
  }

  static newId(): string {
    return randomUUID()
  }

  /** The database granted a lease to this identity; the question was sent at `sentAt`. */
  granted(workerId: string, sentAt: number): void {
    if (this.#ended) return
    this.#workerId = workerId
    this.#until = sentAt + this.#leaseMs
    this.#watch()
  }

  /** Notice that the lease is over, also after the process slept or its event loop was blocked. */
  check(): void {
    if (this.#workerId === undefined) return
    // A timer may fire a fraction of a millisecond early; then the lease still holds, and is watched on.
    if (this.holds) this.#watch()
    else this.lose()
  }

  /** The lease is over, for ever. */
  lose(): void {
    const workerId = this.#workerId
    if (workerId === undefined) return
    this.#drop()
    this.#onLost(workerId)
  }

  /** Forget the identity without telling anybody, and take no other: the end of a shutdown. */
  end(): void {
    this.#ended = true
    this.#drop()
  }

  #watch(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.check(), Math.ceil(this.leftMs) + 1)
  }

  #drop(): void {
    clearTimeout(this.#timer)
    this.#workerId = undefined
    this.#until = 0
  }
}
