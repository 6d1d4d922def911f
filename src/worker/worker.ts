// A worker process: puts its services together, starts and stops them in order.

import { EventEmitter } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ClaimedJob } from '../engine/claim.ts'
import type { Database } from '../engine/database.ts'
import type { Outcome } from '../engine/finish.ts'
import { type Beat, retire, type ServedSettings, type StartedJob } from '../engine/lease.ts'
import { checkSchemaVersion } from '../engine/schema-check.ts'
import { notLetIn } from '../engine/translate.ts'
import { isRowlockError, RowlockError } from '../ground/errors.ts'
import { Crew } from './crew.ts'
import type { StopOptions, WorkerEvents, WorkerStatus } from './events.ts'
import { factsOf, identityOf } from './facts.ts'
import { Fetcher } from './fetcher.ts'
import { Frontier } from './frontier.ts'
import { Heartbeat } from './heartbeat.ts'
import { Lease } from './lease.ts'
import { Listener } from './listener.ts'
import { errorFields, type Logger, withoutThrowing } from './log.ts'
import { Maintenance } from './maintenance.ts'
import type { HandlerMiddleware } from './middleware.ts'
import { stopGraceMs, type WorkerOptions, type WorkerSettings, workerSettings } from './options.ts'
import { Orphans } from './orphans.ts'
import { warnOfSmallPool } from './pool-size.ts'
import { Rates } from './rates.ts'
import { Reporter } from './reporter.ts'
import { slotsOf } from './sharing.ts'
import { takeSignals } from './signals.ts'
import { within } from './within.ts'

/** A process that claims jobs and runs their handlers. Made by `rowlock.worker()`; begins with `start`. */
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
  readonly #timeoutMs: number
  readonly #lease: Lease
  readonly #reporter: Reporter
  readonly #rates = new Rates()
  readonly #crew: Crew
  readonly #fetcher: Fetcher
  readonly #heartbeat: Heartbeat
  readonly #maintenance: Maintenance
  readonly #listener: Listener | undefined
  readonly #lag = monitorEventLoopDelay({ resolution: 20 })
  #state: WorkerStatus['state'] = 'new'
  /** Known before the first lease is granted. */
  #installation = ''
  #stopping: Promise<void> | undefined
  #hurry: (() => void) | undefined
  #releaseSignals: ((handlersLeft: boolean) => void) | undefined
  #wasSignalled = false
  #lagMs = 0
  #fit = true

  constructor(database: Database, options: WorkerOptions) {
    super()
    this.#settings = workerSettings(options)
    const { handlers, leaseMs, heartbeatMs, logger, listen, listenConnectionString } = this.#settings
    const transactional = [...handlers.values()].some((handler) => handler.transactional)
    const slots = slotsOf(this.#settings.queues, this.#settings.sharing)
    const timeoutMs = Math.max(1_000, leaseMs / 2)
    // A password takes four round trips.
    const link = { connectTimeoutMs: Math.max(2_000, leaseMs / 2) }
    this.#lanes = {
      work: database.lane(3, 'rowlock worker', link),
      beat: database.lane(1, 'rowlock heartbeat', link),
      listen: listen
        ? database.lane(1, 'rowlock listen', { ...link, connectionString: listenConnectionString })
        : undefined,
      transactions: transactional ? database.transactionLane(slots, 'rowlock handlers', link) : database,
    }
    this.#log = withoutThrowing(logger)
    this.#timeoutMs = timeoutMs
    this.#lease = new Lease(leaseMs, (workerId) => this.#lost(workerId))
    this.#reporter = new Reporter({
      database: this.#lanes.work,
      flushMs: this.#settings.flushMs,
      timeoutMs,
      onWritten: (outcome, to) => this.#rates.note(outcome, to),
      onLost: (outcome) => this.#outcomeLost(outcome),
      onError: (error) => this.#complain('outcomes could not be written yet', error),
      onFlushed: () => this.#fetcher.nudge(),
    })
    this.#crew = new Crew({
      settings: this.#settings,
      lease: this.#lease,
      reporter: this.#reporter,
      runner: {
        database: this.#lanes.work,
        transactions: this.#lanes.transactions,
        timeoutMs,
        middleware: this.#middleware,
        logger: this.#log,
        installation: () => this.#installation,
        onCommitted: (outcome, to) => this.#rates.note(outcome, to),
      },
      isOpen: () => this.#state === 'running',
      onRoom: () => this.#fetcher.nudge(),
      onStuck: (job, stuck) => this.#stuck(job, stuck),
      onError: (error) => this.#complain('a job could not be run', error),
    })
    this.#fetcher = new Fetcher({
      database: this.#lanes.work,
      lease: this.#lease,
      slots: this.#crew.slots,
      frontier: new Frontier(),
      orphans: new Orphans({
        database: this.#lanes.work,
        timeoutMs,
        doubtMs: leaseMs,
        everyMs: leaseMs,
        isKnown: (job) => this.#crew.holds(job),
        onFound: (jobs) => {
          this.#log.warn(
            { jobs: jobs.length },
            'jobs that it knows nothing of are given back: an answer was lost',
          )
          this.#crew.disown(jobs)
        },
      }),
      pollMs: this.#settings.pollMs,
      pollListeningMs: this.#settings.pollListeningMs,
      timeoutMs,
      isListening: () => this.#listener?.isProven ?? false,
      isHeld: () => this.#state !== 'running' || this.#reporter.isFull,
      onClaim: (claimed) => this.#crew.take(claimed),
      onError: (error) => this.#complain('claiming failed', error),
    })
    this.#heartbeat = new Heartbeat({
      database: this.#lanes.beat,
      lease: this.#lease,
      leaseMs,
      heartbeatMs,
      beforeRegister: () => this.#greet(),
      identity: () => identityOf(this.#settings),
      facts: () => factsOf(this.status, this.#crew.slots, this.#rates),
      started: () => this.#crew.untold(),
      onGranted: (settings) => this.#granted(settings),
      onBeat: (beat, told) => this.#beaten(beat, told),
      onError: (error) => this.#complain('the heartbeat failed', error),
    })
    this.#maintenance = new Maintenance({
      database: this.#lanes.work,
      everyMs: this.#settings.maintenanceMs,
      timeoutMs: Math.max(10_000, timeoutMs),
      logger: this.#log,
      // Heard on a direct address says nothing of where the work goes.
      isPooled: () => listenConnectionString !== undefined || this.#listener?.isProven !== true,
      onReaped: (jobs) => {
        this.#log.warn(
          { jobs: jobs.map(({ id, to }) => ({ id, to })) },
          'jobs of a lost worker were given back',
        )
        this.#announce('reaped', { jobs })
      },
      onError: (error) => this.#complain('maintenance failed', error),
    })
    if (this.#lanes.listen !== undefined) {
      this.#listener = new Listener({
        database: this.#lanes.listen,
        notifier: this.#lanes.work,
        onQueue: (queue) => this.#fetcher.wake(queue),
        onCancel: (workerId) => {
          if (workerId === this.#lease.workerId) this.#heartbeat.nudge()
        },
        onSettings: (queue) => {
          if (this.#settings.queues.some((served) => served.queue === queue)) this.#heartbeat.nudge()
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
      running: this.#crew.slots.running,
      prefetched: this.#crew.slots.prefetched,
      stuck: this.#crew.slots.stuck,
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
   * Begin to work. Resolves when the first lease is granted, or when the database is away: then the worker goes on
   * trying by itself.
   *
   * Errors: SCHEMA_MISSING, SCHEMA_OUTDATED, SCHEMA_NEWER; DATABASE_UNAVAILABLE where waiting does not mend it:
   * password, rights, no such database; CLOSED after `stop`.
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
      const lasting = isRowlockError(error) && error.code.startsWith('SCHEMA_') ? error : notLetIn(error)
      if (lasting !== undefined) {
        await this.stop({ grace: 0 })
        throw lasting
      }
      this.#complain('the database is away: the worker starts when it is back', error)
    }
    if (this.#stopping !== undefined) return
    this.#state = 'running'
    warnOfSmallPool(this.#lanes.transactions, this.#settings, this.#log)
    this.#heartbeat.start()
    this.#listener?.start()
    this.#fetcher.start()
    this.#maintenance.start()
  }

  /**
   * Drain: claim nothing new, let running handlers end within the grace, then abort them, write what is to be written,
   * and leave. Resolves when nothing of the worker is left; called twice, it hurries: what runs is aborted.
   *
   * Errors: INVALID_OPTION; then nothing has happened.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const graceMs = stopGraceMs(options)
    if (this.#stopping === undefined) this.#stopping = this.#stop(graceMs ?? this.#settings.graceMs)
    else if (graceMs === undefined || graceMs === 0) this.#hurry?.()
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<void> {
    this.#state = 'draining'
    const hurried = new Promise<void>((resolve) => {
      this.#hurry = resolve
    })
    const fetched = this.#fetcher.stop()
    this.#crew.handBackUnstarted()
    this.#heartbeat.nudge()
    await this.#crew.drain(graceMs, hurried)
    // A claim that was in flight may have brought jobs; then what was reported gets out while the lease holds.
    await within(fetched, 1_000)
    this.#crew.handBackUnstarted()
    // Outcomes get their time in a hurry too: what is not written runs again.
    const flushMs = Math.min(this.#lease.leftMs, Math.max(graceMs, FLUSH_AT_LEAST_MS))
    await within(this.#reporter.flushed(), Math.max(1_000, flushMs))
    this.#reporter.stop()
    await within(
      Promise.all([this.#heartbeat.stop(), this.#maintenance.stop(), this.#listener?.stop()]),
      1_000,
    )
    const workerId = this.#lease.lastWorkerId
    this.#lease.end()
    if (workerId !== undefined) {
      await within(
        retire(this.#lanes.beat, workerId, 1_000).catch(() => {}),
        1_000,
      )
    }
    const { work, beat, listen, transactions } = this.#lanes
    await within(Promise.all([work, beat, listen, transactions].map((lane) => lane?.closeLane())), 1_000)
    this.#lag.disable()
    this.#state = 'stopped'
    this.#announce('stopped', { fit: this.#fit })
    this.#releaseSignals?.((this.#wasSignalled || !this.#fit) && this.#crew.handlersLeft > 0)
  }

  #stuck({ id: jobId, kind }: ClaimedJob, stuck: number): void {
    this.#log.error({ jobId, kind, stuck }, 'a handler ignored its signal; its slot stays taken')
    this.#announce('stuck', { jobId, kind, stuck })
    this.#heartbeat.nudge()
    if (stuck < this.#settings.stuckSlots || this.#state !== 'running') return
    this.#fit = false
    process.exitCode ||= 1
    this.#log.error({ stuck }, 'too many stuck handlers: this worker drains, its process should be replaced')
    void this.stop()
  }

  #granted(settings: ServedSettings): void {
    const workerId = this.#lease.workerId
    if (workerId === undefined) return
    this.#follow(settings)
    this.#fetcher.reset()
    this.#heartbeat.nudge()
    this.#announce('leased', { workerId })
  }

  #lost(workerId: string): void {
    this.#crew.lose()
    this.#maintenance.leave()
    this.#log.error({ workerId }, 'the lease was lost: handlers were aborted')
    this.#announce('lease_lost', { workerId })
    this.#heartbeat.nudge()
  }

  /** Handlers in transactions have a connection each. */
  #follow(settings: ServedSettings): void {
    if (!this.#crew.follow(settings)) return
    const { concurrency } = this.#crew.slots
    this.#lanes.transactions.resizeLane(concurrency)
    this.#log.info({ settings, concurrency }, 'the concurrency of a queue was changed')
    // People who look at slots see what this beat told, from before.
    this.#heartbeat.nudge()
  }

  #beaten({ cancel, duty_in_ms, settings }: Beat, told: readonly StartedJob[]): void {
    this.#crew.told(told)
    this.#follow(settings)
    for (const { id, reason } of cancel) this.#crew.cancel(id, reason ?? undefined)
    this.#maintenance.setDuty(duty_in_ms)
    this.#lagMs = this.#lag.max / 1e6
    this.#lag.reset()
  }

  #heard(proven: boolean): void {
    this.#fetcher.reset()
    this.#announce('listening', { proven })
    if (proven) this.#log.info({}, 'notices are heard')
    else if (this.#state === 'running') this.#log.warn({}, 'notices are not heard: polling')
  }

  #outcomeLost({ id, verb }: Outcome): void {
    if (verb === 'hand_back') return
    this.#log.warn({ jobId: id, verb }, 'an outcome came too late: the job had another owner')
    this.#announce('outcome_lost', { jobId: id, verb })
  }

  async #greet(): Promise<void> {
    const { beat } = this.#lanes
    await checkSchemaVersion(beat)
    if (this.#installation !== '') return
    const sql = 'select id::text as id from rowlock.installation'
    const [row] = await beat.query<{ id: string }>(sql, [], { timeoutMs: this.#timeoutMs })
    this.#installation = row!.id
  }

  #signalled(): void {
    this.#wasSignalled = true
    void this.stop()
  }

  readonly #complainedAt = new Map<string, number>()

  /** A database that is away for an hour is one line every ten seconds, not one per try. */
  #complain(message: string, error: unknown): void {
    const now = performance.now()
    if (now < (this.#complainedAt.get(message) ?? Number.NEGATIVE_INFINITY) + COMPLAIN_EVERY_MS) return
    this.#complainedAt.set(message, now)
    this.#log.warn(errorFields(error), message)
  }

  /** Tell those who listen. One of them that throws is no fault of the worker's. */
  #announce<Name extends keyof WorkerEvents>(name: Name, ...facts: WorkerEvents[Name]): void {
    try {
      ;(this as EventEmitter).emit(name, ...facts)
    } catch (error) {
      this.#complain(`a listener of ${name} failed`, error)
    }
  }
}

const COMPLAIN_EVERY_MS = 10_000
const FLUSH_AT_LEAST_MS = 5_000
