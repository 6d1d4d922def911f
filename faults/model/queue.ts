// The queue as a plain map: what every verb must do, written a second time and as simply as can be. It knows no SQL,
// no locks and no transactions; a claim, which may choose, is in claim.ts.

import {
  type Ending,
  LARGE_BYTES,
  LEASE_MS,
  type ModelAttempt,
  type ModelJob,
  type ModelQueue,
  type ModelWorker,
  type Pair,
} from './job.ts'

/** What a new job is made of. */
export interface NewJob {
  readonly queue: string
  readonly kind: string
  readonly priority: number
  readonly delayMs: number
  readonly expiresInMs: number | null
  readonly dedupeKey: string | null
  readonly maxAttempts: number | null
  readonly backoffMs: number
  readonly inputBytes: number
}

/** What an operator's verb answers: a value, or the code it is refused with. */
export type Answer = { readonly value: unknown } | { readonly refused: string }
const refused = (code: string): Answer => ({ refused: code })
const NOTHING: Answer = { value: null }

const LIVE = ['queued', 'retryable', 'running']
const WAITING = ['queued', 'retryable']
const ENDED = ['done', 'failed', 'cancelled']

/** Everything there is, and the verbs that change it. */
export class ModelDatabase {
  now: number
  readonly jobs = new Map<string, ModelJob>()
  readonly workers = new Map<string, ModelWorker>()
  readonly queues = new Map<string, ModelQueue>()
  /** `queue key` → job id. */
  readonly keys = new Map<string, string>()
  readonly asked = new Map<string, { readonly actor: string | null; readonly reason: string | null }>()
  readonly attempts: ModelAttempt[] = []
  readonly payloads = new Set<string>()
  readonly audit: unknown[] = []
  /** Claims that are over: nothing that names them may change anything. */
  readonly stale: Pair[] = []

  constructor(now: number) {
    this.now = now
  }

  all(...states: readonly string[]): ModelJob[] {
    return [...this.jobs.values()].filter(({ state }) => states.includes(state))
  }

  waiting = (): ModelJob[] => this.all(...WAITING)
  running = (): ModelJob[] => this.all('running')
  retention = (queue: string): number => this.queues.get(queue)?.retentionDays ?? 7

  /** Who would have this key after an enqueue: a live job, or nobody yet. */
  holder(queue: string, key: string | null): string | undefined {
    return key === null ? undefined : this.keys.get(`${queue} ${key}`)
  }

  enqueue(id: string, given: NewJob, more: Partial<ModelJob> = {}): void {
    const { queue, dedupeKey, inputBytes } = given
    this.jobs.set(id, {
      id,
      state: 'queued',
      queue,
      kind: given.kind,
      priority: given.priority,
      attempt: 0,
      failures: 0,
      losses: 0,
      maxAttempts: given.maxAttempts,
      availableAt: this.now + given.delayMs,
      enqueuedAt: this.now,
      claimedAt: null,
      startedAt: null,
      endedAt: null,
      expiresAt: given.expiresInMs === null ? null : this.now + given.expiresInMs,
      workerId: null,
      claimId: null,
      inTransaction: false,
      dedupeKey,
      backoffMs: given.backoffMs,
      cause: null,
      actor: null,
      reason: null,
      retriedFrom: null,
      inputBytes,
      result: null,
      ...more,
    })
    if (dedupeKey !== null) this.keys.set(`${queue} ${dedupeKey}`, id)
    if (inputBytes > LARGE_BYTES) this.payloads.add(id)
  }

  register(id: string): void {
    this.workers.set(id, { id, startedAt: this.now, beatAt: this.now, expiresAt: this.now + LEASE_MS })
  }

  holds(workerId: string): boolean {
    return (this.workers.get(workerId)?.expiresAt ?? 0) > this.now
  }

  heartbeat(workerId: string): string[] | null {
    const worker = this.workers.get(workerId)
    if (worker === undefined || worker.expiresAt <= this.now) return null
    worker.beatAt = this.now
    worker.expiresAt = this.now + LEASE_MS
    return this.running()
      .filter((job) => job.workerId === workerId && this.asked.has(job.id))
      .map(({ id }) => id)
  }

  retire(workerId: string): boolean {
    const worker = this.workers.get(workerId)
    if (worker === undefined) return false
    worker.expiresAt = Math.min(worker.expiresAt, this.now)
    if (this.running().some((job) => job.workerId === workerId)) return false
    return this.workers.delete(workerId)
  }

  /** The job that runs under this claim, if any does. */
  held({ id, claim_id }: Pair): ModelJob | undefined {
    const job = this.jobs.get(id)
    return job?.state === 'running' && job.claimId === claim_id ? job : undefined
  }

  start(pair: Pair, agoMs: number, inTransaction: boolean | undefined): boolean {
    const job = this.held(pair)
    if (job === undefined) return false
    job.startedAt ??= Math.max(job.claimedAt!, this.now - agoMs)
    if (inTransaction !== undefined) job.inTransaction = inTransaction
    return true
  }

  complete(ending: Ending): boolean {
    const job = this.held(ending)
    if (job === undefined) return false
    job.startedAt ??= Math.max(job.claimedAt!, this.now - Math.abs(ending.ran_ms ?? Number.POSITIVE_INFINITY))
    job.result = ending.result ?? null
    this.#leave(job)
    this.#end(job, 'done')
    return true
  }

  /** End an attempt that did not end its job well. Answers where the job went. */
  settle(
    ending: Ending,
    how: { outcome: string; failed?: true; lost?: true; cancelled?: true },
  ): string | null {
    const job = this.held(ending)
    if (job === undefined) return null
    const { ran_ms, after_ms, permanent, cause = null } = ending
    const request = this.asked.get(job.id)
    const failures = job.failures + (how.failed ? 1 : 0)
    job.startedAt ??= ran_ms === undefined ? null : Math.max(job.claimedAt!, this.now - Math.abs(ran_ms))
    job.losses = how.lost ? job.losses! + 1 : how.outcome === 'handed_back' ? job.losses : 0
    job.failures = failures
    let to: string
    if (request !== undefined || how.cancelled) to = 'cancelled'
    else if (permanent) to = 'failed'
    else if (how.failed && failures >= (job.maxAttempts ?? 10)) to = 'dead_letter'
    else if (how.failed) to = 'retryable'
    else to = 'queued'
    this.attempts.push({
      jobId: job.id,
      attempt: job.attempt,
      outcome: to === 'cancelled' ? 'cancelled' : how.outcome,
      cause,
      workerId: job.workerId!,
      claimedAt: job.claimedAt!,
      startedAt: job.startedAt,
      endedAt: this.now,
    })
    this.#leave(job)
    if (to === 'cancelled' || to === 'failed') {
      job.cause = cause
      job.actor = request?.actor ?? null
      job.reason = request?.reason ?? ending.reason ?? null
      this.#end(job, to)
    } else if (to === 'dead_letter') {
      job.cause = cause ?? 'unknown'
      job.endedAt = this.now
      job.state = to
      this.#freeKey(job)
    } else {
      if (after_ms !== undefined) job.availableAt = this.now + Math.max(after_ms, 0)
      else if (how.failed) job.availableAt = this.now + job.backoffMs
      job.cause = to === 'retryable' ? (cause ?? 'unknown') : null
      job.state = to as 'queued' | 'retryable'
      job.claimedAt = job.startedAt = job.workerId = null
    }
    return to
  }

  reap(): string[] {
    const lost = this.running().filter((job) => job.inTransaction || !this.holds(job.workerId!))
    for (const { id, claimId, startedAt } of lost) {
      const failed = startedAt !== null && ({ failed: true } as const)
      this.settle({ id, claim_id: claimId!, cause: 'lease_lost' }, { outcome: 'lost', lost: true, ...failed })
    }
    for (const { id } of [...this.workers.values()]) {
      if (!this.holds(id) && !this.running().some((job) => job.workerId === id)) this.workers.delete(id)
    }
    return lost.map(({ id }) => id)
  }

  cancel(id: string, actor: string | null, reason: string | null): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (WAITING.includes(job.state)) {
      this.endWaiting(job, actor, reason)
      this.#note('cancel', id, job.queue, actor, reason)
      return { value: 'cancelled' }
    }
    if (job.state !== 'running') return { value: 'already_ended' }
    if (!this.asked.has(id)) this.asked.set(id, { actor, reason })
    this.#note('cancel', id, job.queue, actor, reason)
    return { value: 'requested' }
  }

  endWaiting(job: ModelJob, actor: string | null, reason: string | null): void {
    job.actor = actor
    job.reason = reason
    this.#end(job, 'cancelled')
  }

  /** Those that wait beyond their end. */
  expired(): ModelJob[] {
    return this.waiting().filter(({ expiresAt }) => expiresAt !== null && expiresAt <= this.now)
  }

  runNow(id: string): Answer {
    return this.#onWaiting('run_now', id, (job) => {
      if (job.availableAt <= this.now) return false
      job.availableAt = this.now
      return true
    })
  }

  prioritize(id: string, priority: number): Answer {
    return this.#onWaiting('prioritize', id, (job) => {
      job.priority = priority
      return true
    })
  }

  #onWaiting(verb: string, id: string, change: (job: ModelJob) => boolean): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (!WAITING.includes(job.state)) return refused('RL012')
    if (change(job)) this.#note(verb, id, job.queue, null, null)
    return NOTHING
  }

  redrive(id: string): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (job.state !== 'dead_letter') return refused('RL012')
    if (this.holder(job.queue, job.dedupeKey) !== undefined) return refused('RL013')
    if (job.dedupeKey !== null) this.keys.set(`${job.queue} ${job.dedupeKey}`, id)
    Object.assign(job, {
      state: 'queued',
      availableAt: this.now,
      failures: 0,
      losses: 0,
      cause: null,
      expiresAt: null,
      claimedAt: null,
      startedAt: null,
      endedAt: null,
      workerId: null,
    })
    this.#note('redrive', id, job.queue, null, null)
    return NOTHING
  }

  discard(id: string, actor: string | null): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (job.state !== 'dead_letter') return refused('RL012')
    job.actor = actor
    job.reason = 'discarded'
    this.#end(job, 'cancelled')
    this.#note('discard', id, job.queue, actor, null)
    return NOTHING
  }

  /** `newId` is what the database called the new job. */
  retry(id: string, newId: () => string): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (!ENDED.includes(job.state)) return refused('RL012')
    if (this.holder(job.queue, job.dedupeKey) !== undefined) return refused('RL013')
    this.enqueue(newId(), { ...job, delayMs: 0, expiresInMs: null }, { retriedFrom: id })
    this.#note('retry', id, job.queue, null, null)
    return { value: newId() }
  }

  purge(id: string): Answer {
    const job = this.jobs.get(id)
    if (job === undefined) return refused('RL010')
    if (!ENDED.includes(job.state)) return refused('RL012')
    this.jobs.delete(id)
    this.payloads.delete(id)
    for (let n = this.attempts.length - 1; n >= 0; n--) {
      if (this.attempts[n]!.jobId === id) this.attempts.splice(n, 1)
    }
    this.#note('purge', id, job.queue, null, null)
    return NOTHING
  }

  pause(queue: string): boolean {
    if (this.#settings(queue).pausedAt !== null) return false
    this.#settings(queue).pausedAt = this.now
    this.#note('pause', null, queue, null, null)
    return true
  }

  resume(queue: string): boolean {
    if ((this.queues.get(queue)?.pausedAt ?? null) === null) return false
    this.#settings(queue).pausedAt = null
    this.#note('resume', null, queue, null, null)
    return true
  }

  setRetention(queue: string, days: number): void {
    this.#settings(queue).retentionDays = days
    this.#note('set_queue', null, queue, null, null)
  }

  #settings(queue: string): ModelQueue {
    const settings = this.queues.get(queue) ?? { pausedAt: null, retentionDays: 7 }
    this.queues.set(queue, settings)
    return settings
  }

  #note(verb: string, id: string | null, queue: string | null, actor: string | null, reason: string | null) {
    this.audit.push([verb, id, queue, actor, reason])
  }

  /** The claim is over. */
  #leave(job: ModelJob): void {
    this.stale.push({ id: job.id, claim_id: job.claimId! })
    job.claimId = null
    job.inTransaction = false
  }

  /** Into history, if its queue keeps one; nothing of it stays elsewhere. */
  #end(job: ModelJob, state: 'done' | 'failed' | 'cancelled'): void {
    job.state = state
    job.endedAt = this.now
    job.expiresAt = job.losses = null
    this.asked.delete(job.id)
    this.#freeKey(job)
    if (this.retention(job.queue) > 0) return
    this.jobs.delete(job.id)
    this.payloads.delete(job.id)
  }

  #freeKey({ id, queue, dedupeKey }: ModelJob): void {
    if (this.holder(queue, dedupeKey) === id) this.keys.delete(`${queue} ${dedupeKey}`)
  }

  /** What must be so whatever was done: the model is held to it too. */
  fault(): string | undefined {
    for (const [key, id] of this.keys) {
      const job = this.jobs.get(id)
      if (job === undefined || !LIVE.includes(job.state))
        return `key ${key} is held by job ${id}, which is not live`
    }
    const keyless = this.all(...LIVE).find(
      (job) => job.dedupeKey !== null && this.holder(job.queue, job.dedupeKey) !== job.id,
    )
    return keyless && `job ${keyless.id} is live without its key`
  }
}
