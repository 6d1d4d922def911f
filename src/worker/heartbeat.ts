// Keeps the lease: registers a fresh identity, beats, tells what has started, brings back what is to be cancelled.

import type { Database } from '../engine/database.ts'
import { type Beat, heartbeat, register, type ServedSettings, type StartedJob } from '../engine/lease.ts'
import { Lease } from './lease.ts'
import { Loop } from './loop.ts'

export interface HeartbeatOptions {
  readonly database: Database
  readonly lease: Lease
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** Called before the first registration, and again after each loss: may refuse a schema. */
  readonly beforeRegister: () => Promise<void>
  readonly identity: () => Record<string, unknown>
  readonly facts: () => Record<string, unknown>
  readonly started: () => readonly StartedJob[]
  readonly onGranted: (settings: ServedSettings) => void
  /** What came back, and which started jobs the database knows of by now. */
  readonly onBeat: (beat: Beat, told: readonly StartedJob[]) => void
  readonly onError: (error: unknown) => void
}

/** The loop that keeps the lease, and takes a new identity when it is lost. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #loop: Loop

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#loop = new Loop({
      run: () => this.#beat(),
      everyMs: options.heartbeatMs,
      errorMaxMs: Math.min(options.heartbeatMs, 5_000),
      onError: options.onError,
    })
  }

  start(): void {
    this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  runOnce(): Promise<number | undefined> {
    return this.#loop.runOnce()
  }

  /** Something changed that should not wait for the next beat. */
  nudge(): void {
    this.#loop.nudge()
  }

  async #beat(): Promise<number> {
    const { database, lease, leaseMs, heartbeatMs } = this.#options
    lease.check()
    const workerId = lease.workerId
    if (workerId === undefined) {
      await this.#register()
      return heartbeatMs
    }
    const sentAt = performance.now()
    const timeoutMs = Math.max(100, Math.min(lease.leftMs, leaseMs / 2))
    const started = this.#options.started()
    const beat = await heartbeat(database, workerId, started, this.#options.facts(), timeoutMs)
    if (lease.lastWorkerId !== workerId) return 0
    if (beat === null) {
      lease.lose()
      return 0
    }
    lease.granted(workerId, sentAt)
    this.#options.onBeat(beat, started)
    return Math.max(0, heartbeatMs - (performance.now() - sentAt))
  }

  /** A new identity each time: whoever comes late under the old one finds every door shut. */
  async #register(): Promise<void> {
    const { database, lease, leaseMs } = this.#options
    await this.#options.beforeRegister()
    const workerId = Lease.newId()
    const sentAt = performance.now()
    const { settings } = await register(database, workerId, leaseMs, this.#options.identity(), leaseMs / 2)
    lease.granted(workerId, sentAt)
    this.#options.onGranted(settings)
  }
}
