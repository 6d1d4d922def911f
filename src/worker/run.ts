// One job in a slot: its signal, its deadline, and what is known of it from outside.

import type { ClaimedJob } from '../engine/claim.ts'
import type { StartedJob } from '../engine/lease.ts'
import { type AbortCause, JobAborted } from './aborted.ts'
import type { Handler } from './handler.ts'

/** A claimed job in its slot, from its start to its outcome. */
export class Run {
  readonly job: ClaimedJob
  readonly handler: Handler
  readonly timeoutMs: number
  /** Whether its time runs. That of a job in a transaction begins when its connection is there. */
  begun: boolean
  #startedAt = performance.now()
  /** Whether the database knows that it has started. */
  told = false
  /** Its outcome has been reported: a late one is of no interest. */
  reported = false
  stuck = false
  #controller: AbortController | undefined
  #aborted: { readonly reason: JobAborted; readonly at: number } | undefined
  #onAbort: (() => void) | undefined

  constructor(job: ClaimedJob, handler: Handler, timeoutMs: number) {
    this.job = job
    this.handler = handler
    this.timeoutMs = timeoutMs
    this.begun = !handler.transactional
  }

  /** Its handler is to be called now: what went before was waiting. */
  begin(): void {
    this.#startedAt = performance.now()
    this.begun = true
  }

  /** Before it has begun: until when it may wait. Unit: ms of the monotonic clock. */
  get deadlineAt(): number {
    return this.#startedAt + this.timeoutMs
  }

  /** Made when somebody looks: most short jobs never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  get abortCause(): AbortCause | undefined {
    return this.#aborted?.reason.code
  }

  get abortReason(): JobAborted | undefined {
    return this.#aborted?.reason
  }

  /** When the signal was given. Unit: ms of the monotonic clock. */
  get abortedAt(): number | undefined {
    return this.#aborted?.at
  }

  get ranMs(): number {
    return performance.now() - this.#startedAt
  }

  /** The first cause counts. */
  abort(cause: AbortCause, detail?: string): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason: new JobAborted(cause, detail), at: performance.now() }
    this.#controller?.abort(this.#aborted.reason)
    this.#onAbort?.()
  }

  /** What else must happen at an abort: a transaction's connection is cut. */
  onAbort(listener: (() => void) | undefined): void {
    this.#onAbort = listener
    if (this.#aborted !== undefined) listener?.()
  }

  get asStarted(): StartedJob {
    return { id: this.job.id, claim_id: this.job.claimId, ago_ms: Math.round(this.ranMs) }
  }
}
