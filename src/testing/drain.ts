// Works off what is due, in the test's own process, and says what became of it.

import { type ClaimedJob, claim } from '../engine/claim.ts'
import { finish, type Outcome } from '../engine/finish.ts'
import { heartbeat, register, retire } from '../engine/lease.ts'
import { RELEASE } from '../engine/release.ts'
import { RowlockError } from '../ground/errors.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { checkOptions } from '../ground/nearest.ts'
import { databaseOf, type Rowlock } from '../rowlock.ts'
import type { Handler } from '../worker/handler.ts'
import { Lease } from '../worker/lease.ts'
import { type Logger, stderrLogger } from '../worker/log.ts'
import type { HandlerMiddleware } from '../worker/middleware.ts'
import { workerSettings } from '../worker/options.ts'
import { Run } from '../worker/run.ts'
import { runJob } from '../worker/runner.ts'
import type { RunnerOptions } from '../worker/runner-options.ts'

export interface DrainOptions {
  /** Their kinds are what is run; jobs of other kinds stay. */
  readonly handlers: readonly Handler[]
  /** Default: those that the handlers' jobs are defined with. */
  readonly queues?: readonly string[]
  /** Stop after so many, so that jobs which enqueue jobs end. Unit: default 10,000. */
  readonly maxJobs?: number
  /** Around every handler, as `use` puts it in a worker: the first is the outermost. */
  readonly middleware?: readonly HandlerMiddleware[]
  /** Default: warnings and errors on stderr. */
  readonly logger?: Logger
}

/** How many attempts ended how. */
export interface Drained {
  done: number
  failed: number
  /** Will run again after their backoff. */
  retried: number
  /** Became dead letters. */
  dead: number
  snoozed: number
  cancelled: number
}

const LEASE_MS = 300_000
const TIMEOUT_MS = 60_000
const BATCH = 100

/**
 * Run everything that is due, one job after the other, until nothing is. What is scheduled stays; move the clock
 * ({@link testClock}) and drain again.
 */
export async function drain(rowlock: Rowlock, options: DrainOptions): Promise<Drained> {
  checkOptions(options, ['handlers', 'queues', 'maxJobs', 'middleware', 'logger'], 'drain')
  const { handlers, queues } = workerSettings({
    handlers: options.handlers,
    ...(options.queues !== undefined && {
      queues: Object.fromEntries(options.queues.map((queue) => [queue, {}])),
    }),
  })
  const left = checkInteger(options.maxJobs ?? 10_000, { name: 'maxJobs', min: 1, max: 10_000_000 })
  const users = databaseOf(rowlock)
  // A pool of one connection has none for these while a handler's transaction is open.
  const database = users.lane(1, 'rowlock drain')
  const workerId = Lease.newId()
  const facts = {
    name: 'drain',
    release: RELEASE,
    queues: Object.fromEntries(queues.map(({ queue }) => [queue, {}])),
    kinds: [...handlers.keys()],
  }
  let installation = ''
  const runner: RunnerOptions = {
    database,
    transactions: users,
    timeoutMs: TIMEOUT_MS,
    middleware: options.middleware ?? [],
    logger: options.logger ?? stderrLogger,
    installation: () => installation,
    onCommitted: () => {},
  }
  const drained: Drained = { done: 0, failed: 0, retried: 0, dead: 0, snoozed: 0, cancelled: 0 }
  try {
    await register(database, workerId, LEASE_MS, facts, TIMEOUT_MS)
    const [row] = await database.query<{ id: string }>('select id::text as id from rowlock.installation')
    installation = row!.id
    for (let jobs = 0; jobs < left; ) {
      const limit = Math.min(BATCH, left - jobs)
      const kinds = [...handlers.keys()]
      const wants = queues.map(({ queue }) => ({ queue, limit, kinds }))
      const claimed = await claim(database, workerId, wants, null, TIMEOUT_MS)
      if (claimed.jobs.length === 0) break
      jobs += claimed.jobs.length
      for (const job of claimed.jobs) {
        // A handler before it in this batch may have cancelled it: then it never starts, as in a worker.
        if (await isCancelled(job))
          count(await settle({ verb: 'hand_back', id: job.id, claim_id: job.claimId, attempt: job.attempt }))
        else await work(job, handlers.get(job.kind)!)
      }
    }
    return drained
  } finally {
    await retire(database, workerId, TIMEOUT_MS).finally(() => database.closeLane())
  }

  async function work(job: ClaimedJob, handler: Handler): Promise<void> {
    const run = new Run(
      job,
      handler,
      job.timeoutMs ?? handler.definition.timeoutMs ?? LIMITS.timeoutMs.default,
    )
    const unwatch = watch(run)
    const outcome = await runJob(run, runner).finally(unwatch)
    // A transactional handler has settled its job itself.
    count(outcome === null ? await stateOf(job.id) : await settle(outcome))
    if (outcome?.verb !== 'hand_back' || run.abortCause !== 'timeout') return
    const why = `no connection for the transaction of job ${job.id} (${job.kind}): all of the pool are in use`
    throw new RowlockError('DATABASE_UNAVAILABLE', why)
  }

  async function isCancelled({ id }: ClaimedJob): Promise<boolean> {
    const beat = await heartbeat(database, workerId, [], {}, TIMEOUT_MS)
    return beat?.cancel.some((asked) => asked.id === id) ?? false
  }

  function count(to: string | undefined): void {
    if (to === 'done') drained.done++
    else if (to === 'failed') drained.failed++
    else if (to === 'retryable') drained.retried++
    else if (to === 'dead_letter') drained.dead++
    else if (to === 'cancelled') drained.cancelled++
    else if (to === 'queued') drained.snoozed++
  }

  async function settle(outcome: Outcome): Promise<string | undefined> {
    const { completed, moved } = await finish(database, [outcome], TIMEOUT_MS)
    return completed.length > 0 ? 'done' : moved[0]?.to
  }

  async function stateOf(id: string): Promise<string | undefined> {
    const found = await rowlock.job(id)
    return found?.state
  }
}

/** Abort it at its deadline, which moves when it begins. Returns what ends that. */
function watch(run: Run): () => void {
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const leftMs = run.deadlineAt - performance.now()
    if (leftMs <= 0) run.abort('timeout')
    else timer = setTimeout(look, Math.min(leftMs, 2 ** 31 - 1))
  }
  look()
  return () => clearTimeout(timer)
}
