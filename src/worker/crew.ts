// The jobs that this process holds: those that wait for a slot, those that run, and how the one becomes the other.

import type { Claim, ClaimedJob } from '../engine/claim.ts'
import type { Outcome } from '../engine/finish.ts'
import { type ServedSettings, type StartedJob, start } from '../engine/lease.ts'
import { LIMITS } from '../ground/limits.ts'
import type { Lease } from './lease.ts'
import type { WorkerSettings } from './options.ts'
import type { HeldJob } from './orphans.ts'
import { persist } from './persist.ts'
import type { Reporter } from './reporter.ts'
import { Run } from './run.ts'
import { deafOutcome, runJob } from './runner.ts'
import type { RunnerOptions } from './runner-options.ts'
import { Runs } from './runs.ts'
import { Slots } from './slots.ts'
import { within } from './within.ts'

export interface CrewOptions {
  readonly settings: WorkerSettings
  readonly lease: Lease
  readonly reporter: Reporter
  readonly runner: RunnerOptions
  /** Whether jobs may start: the worker runs, and does not drain. */
  readonly isOpen: () => boolean
  /** A slot is free. */
  readonly onRoom: () => void
  /** A handler ignored its signal; so many of them do by now. */
  readonly onStuck: (job: ClaimedJob, stuck: number) => void
  readonly onError: (error: unknown) => void
}

/** Takes claimed jobs, starts those that have a slot, speaks for those that end or are deaf, hands back the rest. */
export class Crew {
  readonly slots: Slots
  readonly #options: CrewOptions
  readonly #runs: Runs
  #aloneTimer: NodeJS.Timeout | undefined

  constructor(options: CrewOptions) {
    const { queues, handlers, sharing, abortGraceMs } = options.settings
    this.#options = options
    this.slots = new Slots(queues, [...handlers.keys()], sharing)
    this.#runs = new Runs({ abortGraceMs, onDeaf: (run) => this.#deaf(run) })
  }

  /** Jobs came in: start what has a slot. */
  take({ jobs, alone }: Claim): void {
    const [first] = jobs
    if (!this.#options.isOpen()) {
      this.handBack(jobs)
      return
    }
    if (alone && first !== undefined) {
      this.#setAlone(first)
    } else {
      this.slots.add(jobs)
    }
    this.#fill()
  }

  /** Return these to their lines. */
  handBack(jobs: readonly HeldJob[]): void {
    for (const job of jobs) this.#options.reporter.report(handBack(job))
  }

  /** The database holds these for us, and no handler is here: one that had begun in a transaction lost its session. */
  disown(jobs: readonly HeldJob[]): void {
    for (const job of jobs)
      this.#options.reporter.report(job.inTransaction ? sessionLost(job) : handBack(job))
  }

  /** What was claimed and has not started goes back to its line. */
  handBackUnstarted(): void {
    this.handBack(this.slots.takeUnstarted())
    const alone = this.slots.takeAlone()
    if (alone !== undefined) this.handBack([alone])
    clearTimeout(this.#aloneTimer)
  }

  /** The queues' settings, as they are by now. Answers whether anything is another than it was. */
  follow(settings: ServedSettings): boolean {
    const { surplus, changed } = this.slots.resize(settings)
    this.handBack(surplus)
    if (!changed) return false
    this.#fill()
    this.#options.onRoom()
    return true
  }

  /** The right to all of them is gone. */
  lose(): void {
    this.slots.takeUnstarted()
    this.slots.takeAlone()
    clearTimeout(this.#aloneTimer)
    this.#runs.abortAll('lease_lost')
  }

  /** Somebody asked for a job to be cancelled. One that has not started never will: given back, it is cancelled. */
  cancel(id: string, reason: string | undefined): void {
    const unstarted = this.slots.takeOne(id)
    if (unstarted !== undefined) this.handBack([unstarted])
    else this.#runs.abort(id, 'cancelled', reason)
  }

  /** Let what runs end, within the grace or until it is hurried; then abort it, and speak for those that are deaf. */
  async drain(graceMs: number, hurried: Promise<void>): Promise<void> {
    await within(this.#runs.settled(), graceMs, hurried)
    if (this.#runs.open.length > 0) {
      this.#runs.abortAll('shutdown')
      await within(this.#runs.settled(), this.#options.settings.abortGraceMs)
      for (const run of this.#runs.open) this.#report(run, deafOutcome(run))
    }
    this.#runs.stop()
  }

  /** Is this claim held here, or its outcome still to be written? */
  holds({ id, claimId }: HeldJob): boolean {
    return (
      this.#runs.has(id, claimId) || this.slots.has(id, claimId) || this.#options.reporter.holds(id, claimId)
    )
  }

  /** Handlers that have not come to an end, spoken for or not. */
  get handlersLeft(): number {
    return this.#runs.size
  }

  /** Those that the database does not know to have started. */
  untold(): StartedJob[] {
    return this.#runs.open.filter((run) => run.begun && !run.told).map((run) => run.asStarted)
  }

  /** By now it does. */
  told(jobs: readonly StartedJob[]): void {
    this.#runs.told(jobs)
  }

  /** Nothing starts beside this one, and it starts beside nothing: the others have a while to end. */
  #setAlone(job: ClaimedJob): void {
    this.handBack(this.slots.setAlone(job))
    const { settings, runner, onRoom } = this.#options
    const { id: jobId, kind, losses } = job
    runner.logger.warn({ jobId, kind, losses }, 'a job that was lost before is to run alone')
    clearTimeout(this.#aloneTimer)
    this.#aloneTimer = setTimeout(() => {
      const unstarted = this.slots.giveUpAlone(job, settings.aloneWaitMs)
      if (unstarted === undefined) return
      runner.logger.warn({ jobId, kind }, 'it waited too long for others to end: it is handed back')
      this.handBack([unstarted])
      onRoom()
    }, settings.aloneWaitMs)
    this.#aloneTimer.unref()
  }

  #fill(): void {
    const { isOpen, lease } = this.#options
    if (!isOpen() || !lease.holds) return
    const { startable, expired } = this.slots.takeStartable()
    // Given back, they are cancelled: to expire is the database's word.
    this.handBack(expired)
    for (const job of startable) void this.#run(job)
  }

  async #run(job: ClaimedJob): Promise<void> {
    const { settings, runner, onRoom, onError } = this.#options
    const handler = settings.handlers.get(job.kind)!
    const timeoutMs = job.timeoutMs ?? handler.definition.timeoutMs ?? LIMITS.timeoutMs.default
    const run = new Run(job, handler, timeoutMs)
    this.#runs.add(run)
    let outcome: Outcome | null = null
    try {
      const mayStart = !this.slots.isAlone(job) || (await this.#putOnRecord(run))
      outcome = mayStart ? await runJob(run, runner) : handBack(job)
    } catch (error) {
      // Whatever the handler did has its outcome: this is a fault of ours.
      outcome = handBack(job)
      onError(error)
    } finally {
      this.#report(run, outcome)
      this.#runs.remove(run)
      this.slots.free(job, run.stuck)
      this.#fill()
      // A limited queue has room only when the outcome is written, and its reporter says so then.
      if (!this.slots.isLimited(job.queue) || this.#options.reporter.open === 0) onRoom()
    }
  }

  /** A job that may take the process down is on record as started before it can. */
  async #putOnRecord(run: Run): Promise<boolean> {
    const { database, timeoutMs } = this.#options.runner
    const kept = await persist(run, () => start(database, [run.asStarted], timeoutMs))
    run.told = kept.has(run.job.id)
    return run.told
  }

  #report(run: Run, outcome: Outcome | null): void {
    if (run.reported) return
    run.reported = true
    if (outcome !== null) this.#options.reporter.report(outcome)
  }

  #deaf(run: Run): void {
    this.#report(run, deafOutcome(run))
    this.slots.setStuck(run.job)
    this.#options.onStuck(run.job, this.slots.stuck)
    // A job that waits to run alone waits for a stuck one no longer.
    this.#fill()
    this.#options.onRoom()
  }
}

/** A failure, for the job may be what ends its sessions, or their server. */
const sessionLost = ({ id, claimId, attempt }: HeldJob): Outcome => ({
  verb: 'fail',
  id,
  claim_id: claimId,
  attempt,
  outcome: 'failed',
  cause: 'lease_lost',
  error: { name: 'LeaseLost', message: "the session of the handler's transaction is gone" },
})

const handBack = ({ id, claimId, attempt }: HeldJob): Outcome => ({
  verb: 'hand_back',
  id,
  claim_id: claimId,
  attempt,
})
