// A worker process: puts its services together, starts and stops them in order.

import { EventEmitter } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Claim, ClaimedJob } from '../engine/claim.ts'
import type { Database } from '../engine/database.ts'
import type { Outcome } from '../engine/finish.ts'
import { type Beat, retire, start } from '../engine/lease.ts'
import { RELEASE } from '../engine/release.ts'
import { checkSchemaVersion } from '../engine/schema-check.ts'
import { isRowlockError, RowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'
import { Fetcher } from './fetcher.ts'
import { Frontier } from './frontier.ts'
import { Heartbeat } from './heartbeat.ts'
import { Lease } from './lease.ts'
import { Listener } from './listener.ts'
import { errorFields, type Logger } from './log.ts'
import { Maintenance } from './maintenance.ts'
import type { HandlerMiddleware } from './middleware.ts'
import { type WorkerOptions, type WorkerSettings, workerSettings } from './options.ts'
import { Reporter } from './reporter.ts'
import { Run } from './run.ts'
import { deafOutcome, type RunnerOptions, runJob } from './runner.ts'
import { Runs } from './runs.ts'
import { takeSignals } from './signals.ts'
import { Slots } from './slots.ts'

/** What a worker tells those who listen. */
export interface WorkerEvents {
  /** The lease was granted, at the start or after a loss. */
  leased: [{ readonly workerId: string }]
  /** The lease could not be proven: all handlers were aborted. */
  lease_lost: [{ readonly workerId: string }]
  /** An outcome came too late: the job had another owner. */
  outcome_lost: [{ readonly jobId: string; readonly verb: string }]
  /** A handler ignored its signal. */
  stuck: [{ readonly jobId: string; readonly kind: string; readonly stuck: number }]
  /** Jobs of lost workers were given back by this one. */
  reaped: [{ readonly jobs: readonly { readonly id: string; readonly to: string }[] }]
  /** Notices are heard, or no longer. */
  listening: [{ readonly proven: boolean }]
  /** The worker has ended; `fit` is false when too many handlers were stuck: let the supervisor start another. */
  stopped: [{ readonly fit: boolean }]
}

/** What a worker is like at this moment. */
export interface WorkerStatus {
  readonly state: 'new' | 'starting' | 'running' | 'draining' | 'stopped'
  readonly workerId: string | null
  readonly listening: boolean
  readonly running: number
  readonly prefetched: number
  readonly stuck: number
  /** Event-loop lag, the worst of the last heartbeat. Unit: ms. */
  readonly lagMs: number
}

/** How to stop. */
export interface StopOptions {
  /** Default: the worker's `grace`. 0 aborts at once. Unit: ms. */
  readonly graceMs?: number
}

export class Worker extends EventEmitter<WorkerEvents> {
  readonly #settings: WorkerSettings
  readonly #lanes: {
    readonly work: Database
    readonly beat: Database
    readonly listen: Database | undefined
    readonly transactions: Database
  }
  readonly #middleware: HandlerMiddleware[] = []
  readonly #log: Logger
  readonly #slots: Slots
  readonly #runs: Runs
  readonly #lease: Lease
  readonly #reporter: Reporter
  readonly #fetcher: Fetcher
  readonly #heartbeat: Heartbeat
  readonly #maintenance: Maintenance
  readonly #listener: Listener | undefined
  readonly #lag = monitorEventLoopDelay({ resolution: 20 })
  #state: WorkerStatus['state'] = 'new'
  #installation: Promise<string> | undefined
  #stopping: Promise<void> | undefined
  #hurry: (() => void) | undefined
  #releaseSignals: (() => void) | undefined
  #lagMs = 0
  #fit = true

  constructor(database: Database, options: WorkerOptions) {
    super()
    this.#settings = workerSettings(options)
    const { queues, handlers, leaseMs, heartbeatMs, logger, listen, listenConnectionString } = this.#settings
    const transactional = [...handlers.values()].some((handler) => handler.transactional)
    const slots = queues.reduce((sum, { concurrency }) => sum + concurrency, 0)
    this.#lanes = {
      work: database.lane(3, 'rowlock worker'),
      beat: database.lane(1, 'rowlock heartbeat'),
      listen: listen ? database.lane(1, 'rowlock listen', listenConnectionString) : undefined,
      transactions: transactional ? database.transactionLane(slots, 'rowlock handlers') : database,
    }
    this.#log = logger
    const timeoutMs = Math.max(1_000, leaseMs / 2)
    this.#slots = new Slots(queues, [...handlers.keys()])
    this.#runs = new Runs({ abortGraceMs: this.#settings.abortGraceMs, onDeaf: (run) => this.#deaf(run) })
    this.#lease = new Lease(leaseMs, (workerId) => this.#lost(workerId))
    this.#reporter = new Reporter({
      database: this.#lanes.work,
      flushMs: this.#settings.flushMs,
      timeoutMs,
      onLost: (outcome) => this.#outcomeLost(outcome),
      onError: (error) => this.#complain('outcomes could not be written yet', error),
      onFlushed: () => this.#fetcher.nudge(),
    })
    this.#fetcher = new Fetcher({
      database: this.#lanes.work,
      lease: this.#lease,
      slots: this.#slots,
      frontier: new Frontier(),
      pollMs: this.#settings.pollMs,
      pollListeningMs: this.#settings.pollListeningMs,
      timeoutMs,
      isListening: () => this.#listener?.isProven ?? false,
      isHeld: () => this.#state !== 'running' || this.#reporter.isFull,
      onClaim: (claimed) => this.#take(claimed),
      onError: (error) => this.#complain('claiming failed', error),
    })
    this.#heartbeat = new Heartbeat({
      database: this.#lanes.beat,
      lease: this.#lease,
      leaseMs,
      heartbeatMs,
      beforeRegister: () => checkSchemaVersion(this.#lanes.beat),
      identity: () => this.#identity(),
      facts: () => this.#facts(),
      started: () => this.#untold(),
      onGranted: () => this.#granted(),
      onBeat: (beat) => this.#beaten(beat),
      onError: (error) => this.#complain('the heartbeat failed', error),
    })
    this.#maintenance = new Maintenance({
      database: this.#lanes.work,
      queues: queues.map(({ queue }) => queue),
      everyMs: this.#settings.maintenanceMs,
      timeoutMs: Math.max(10_000, timeoutMs),
      logger,
      isPooled: () => this.#listener !== undefined && !this.#listener.isProven,
      onReaped: (jobs) => {
        this.#log.warn(
          { jobs: jobs.map(({ id, to }) => ({ id, to })) },
          'jobs of a lost worker were given back',
        )
        this.emit('reaped', { jobs })
      },
      onError: (error) => this.#complain('maintenance failed', error),
    })
    if (this.#lanes.listen !== undefined) {
      this.#listener = new Listener({
        database: this.#lanes.listen,
        onQueue: (queue) => this.#fetcher.wake(queue),
        onCancel: (workerId) => {
          if (workerId === this.#lease.workerId) this.#heartbeat.nudge()
        },
        onChange: (proven) => this.#heard(proven),
        onError: (error) => this.#complain('listening failed: polling instead', error),
      })
    }
  }

  get status(): WorkerStatus {
    return {
      state: this.#state,
      workerId: this.#lease.workerId ?? null,
      listening: this.#listener?.isProven ?? false,
      running: this.#slots.running,
      prefetched: this.#slots.prefetched,
      stuck: this.#slots.stuck,
      lagMs: this.#lagMs,
    }
  }

  /** Wrap every handler. The first one added is the outermost. Before `start`. */
  use(middleware: HandlerMiddleware): this {
    if (typeof middleware !== 'function') {
      throw new RowlockError('INVALID_OPTION', 'use takes a function (context, next)', { path: 'middleware' })
    }
    this.#middleware.push(middleware)
    return this
  }

  /**
   * Begin to work. Resolves when the first lease is granted, or when the database is away: then the worker goes on trying
   * by itself.
   *
   * Errors: SCHEMA_MISSING, SCHEMA_OUTDATED, SCHEMA_NEWER; CLOSED after `stop`.
   */
  async start(): Promise<void> {
    if (this.#state === 'running' || this.#state === 'starting') return
    if (this.#state !== 'new') throw new RowlockError('CLOSED', 'this worker was stopped: make a new one')
    this.#state = 'starting'
    if (this.#settings.signals) this.#releaseSignals = takeSignals(() => this.#signalled())
    this.#lag.enable()
    try {
      await this.#heartbeat.runOnce()
    } catch (error) {
      if (isRowlockError(error) && error.code.startsWith('SCHEMA_')) {
        await this.stop({ graceMs: 0 })
        throw error
      }
      this.#complain('the database is away: the worker starts when it is back', error)
    }
    if (this.#stopping !== undefined) return
    this.#state = 'running'
    this.#heartbeat.start()
    this.#listener?.start()
    this.#fetcher.start()
    this.#maintenance.start()
  }

  /**
   * Drain: claim nothing new, let running handlers end within the grace, then abort them, write what is to be written,
   * and leave. Resolves when nothing of the worker is left; called twice, it hurries: what runs is aborted.
   */
  stop(options: StopOptions = {}): Promise<void> {
    if (this.#stopping !== undefined) {
      if (options.graceMs === undefined || options.graceMs === 0) this.#hurry?.()
      return this.#stopping
    }
    this.#stopping = this.#stop(options.graceMs ?? this.#settings.graceMs)
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<void> {
    this.#state = 'draining'
    const hurried = new Promise<void>((resolve) => {
      this.#hurry = resolve
    })
    this.#handBack(this.#slots.takeUnstarted())
    const fetched = this.#fetcher.stop()
    this.#heartbeat.nudge()
    await within(this.#runs.settled(), graceMs, hurried)
    if (this.#runs.open.length > 0) {
      this.#runs.abortAll('shutdown')
      await within(this.#runs.settled(), this.#settings.abortGraceMs)
      for (const run of this.#runs.open) this.#report(run, deafOutcome(run))
    }
    // A claim that was in flight may have brought jobs; then what was reported gets out while the lease holds.
    await within(fetched, 1_000)
    const alone = this.#slots.takeAlone()
    this.#handBack([...this.#slots.takeUnstarted(), ...(alone ? [alone] : [])])
    await within(this.#reporter.flushed(), Math.max(1_000, Math.min(this.#lease.leftMs, graceMs)))
    this.#reporter.stop()
    await within(
      Promise.all([this.#heartbeat.stop(), this.#maintenance.stop(), this.#listener?.stop()]),
      1_000,
    )
    const workerId = this.#lease.lastWorkerId
    this.#lease.drop()
    if (workerId !== undefined) {
      await within(
        retire(this.#lanes.beat, workerId, 1_000).catch(() => {}),
        1_000,
      )
    }
    const { work, beat, listen, transactions } = this.#lanes
    await within(Promise.all([work, beat, listen, transactions].map((lane) => lane?.closeLane())), 1_000)
    this.#lag.disable()
    this.#releaseSignals?.()
    this.#state = 'stopped'
    this.emit('stopped', { fit: this.#fit })
  }

  /** Jobs came in: start what has a slot. */
  #take(claimed: Claim): void {
    if (this.#state === 'draining') {
      this.#handBack(claimed.jobs)
      return
    }
    const [first] = claimed.jobs
    if (claimed.alone && first !== undefined) {
      this.#handBack(this.#slots.setAlone(first))
      this.#log.warn(
        { jobId: first.id, kind: first.kind, losses: first.losses },
        'a job that was lost before runs alone',
      )
    } else {
      this.#slots.add(claimed.jobs)
    }
    this.#fill()
  }

  #fill(): void {
    if (this.#state === 'draining' || !this.#lease.holds) return
    for (const job of this.#slots.takeStartable()) void this.#run(job)
  }

  async #run(job: ClaimedJob): Promise<void> {
    const handler = this.#settings.handlers.get(job.kind)!
    const timeoutMs = job.timeoutMs ?? handler.definition.timeoutMs ?? LIMITS.timeoutMs.default
    const run = new Run(job, handler, timeoutMs)
    this.#runs.add(run)
    let outcome: Outcome | null = null
    try {
      if (this.#slots.isAlone(job) && !(await this.#tell(run))) return
      outcome = await runJob(run, this.#runnerOptions)
    } catch (error) {
      this.#complain('a job could not be run', error)
    } finally {
      if (!run.reported) this.#report(run, outcome)
      this.#runs.remove(run)
      this.#slots.free(job, run.stuck)
      this.#fill()
      this.#fetcher.nudge()
    }
  }

  /** A job that may take the process down is on record as started before it can. */
  async #tell(run: Run): Promise<boolean> {
    const kept = await start(this.#lanes.work, [run.asStarted], 5_000)
    run.told = true
    return kept.has(run.job.id)
  }

  #report(run: Run, outcome: Outcome | null): void {
    run.reported = true
    if (outcome !== null) this.#reporter.report(outcome)
  }

  #handBack(jobs: readonly ClaimedJob[]): void {
    for (const { id, claimId } of jobs) this.#reporter.report({ verb: 'hand_back', id, claim_id: claimId })
  }

  #deaf(run: Run): void {
    this.#report(run, deafOutcome(run))
    this.#slots.setStuck(run.job)
    const { id: jobId, kind } = run.job
    const stuck = this.#slots.stuck
    this.#log.error({ jobId, kind, stuck }, 'a handler ignored its signal; its slot stays taken')
    this.emit('stuck', { jobId, kind, stuck })
    if (stuck >= this.#settings.stuckSlots && this.#fit) {
      this.#fit = false
      process.exitCode ||= 1
      this.#log.error(
        { stuck },
        'too many stuck handlers: this worker drains, its process should be replaced',
      )
      void this.stop()
    }
  }

  #granted(): void {
    const workerId = this.#lease.workerId
    if (workerId === undefined) return
    this.#fetcher.reset()
    this.#heartbeat.nudge()
    this.emit('leased', { workerId })
  }

  #lost(workerId: string): void {
    this.#slots.takeUnstarted()
    this.#slots.takeAlone()
    this.#runs.abortAll('lease_lost')
    this.#maintenance.leave()
    this.#log.error({ workerId }, 'the lease was lost: handlers were aborted')
    this.emit('lease_lost', { workerId })
    this.#heartbeat.nudge()
  }

  #beaten({ cancel, duty_in_ms }: Beat): void {
    for (const { id, reason } of cancel) this.#runs.abort(id, 'cancelled', reason ?? undefined)
    this.#maintenance.setDuty(duty_in_ms)
    this.#lagMs = this.#lag.max / 1e6
    this.#lag.reset()
  }

  #heard(proven: boolean): void {
    this.#fetcher.reset()
    this.emit('listening', { proven })
    if (proven) this.#log.info({}, 'notices are heard')
    else if (this.#state === 'running') this.#log.warn({}, 'notices are not heard: polling')
  }

  #outcomeLost({ id, verb }: Outcome): void {
    if (verb === 'hand_back') return
    this.#log.warn({ jobId: id, verb }, 'an outcome came too late: the job had another owner')
    this.emit('outcome_lost', { jobId: id, verb })
  }

  #untold() {
    const untold = this.#runs.open.filter((run) => !run.told)
    return untold.map((run) => {
      run.told = true
      return run.asStarted
    })
  }

  #identity(): Record<string, unknown> {
    const { name, queues, handlers } = this.#settings
    return {
      name,
      release: RELEASE,
      queues: Object.fromEntries(
        queues.map(({ queue, concurrency, prefetch }) => [queue, { concurrency, prefetch }]),
      ),
      kinds: [...handlers.keys()],
      pid: process.pid,
      node: process.version,
    }
  }

  #facts(): Record<string, unknown> {
    const { state, running, prefetched, stuck, listening, lagMs } = this.status
    return {
      draining: state === 'draining',
      running,
      prefetched,
      stuck,
      listening,
      lag_ms: Math.round(lagMs),
    }
  }

  get #runnerOptions(): RunnerOptions {
    return {
      database: this.#lanes.work,
      transactions: this.#lanes.transactions,
      timeoutMs: Math.max(1_000, this.#settings.leaseMs / 2),
      middleware: this.#middleware,
      logger: this.#log,
      installation: () => this.#readInstallation(),
    }
  }

  #readInstallation(): Promise<string> {
    this.#installation ??= this.#lanes.work
      .query<{ id: string }>('select id::text as id from rowlock.installation')
      .then(([row]) => row!.id)
      .catch((error) => {
        this.#installation = undefined
        throw error
      })
    return this.#installation
  }

  #signalled(): void {
    void this.stop()
  }

  #lastComplaint = { message: '', at: 0 }

  /** A database that is away for an hour is one line every ten seconds, not one per try. */
  #complain(message: string, error: unknown): void {
    const now = performance.now()
    if (this.#lastComplaint.message === message && now < this.#lastComplaint.at + 10_000) return
    this.#lastComplaint = { message, at: now }
    this.#log.warn(errorFields(error), message)
  }
}

/** Wait for a promise, but not longer than this. */
async function within(promise: Promise<unknown>, ms: number, or?: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise.catch(() => {}), late, ...(or ? [or] : [])])
  clearTimeout(timer)
}
