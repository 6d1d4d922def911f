// Every verb a producer or operator calls, typed, over the SQL functions; in its own transaction or in the caller's.
// Those that change jobs by their ids stand in job-verbs.ts.

import { RowlockError } from '../ground/errors.ts'
import type { AnyJob, AnyRequest, EnqueueOptions, InputOf } from '../ground/job.ts'
import { isJobDefinition } from '../ground/job.ts'
import { checkQueue } from '../ground/names.ts'
import type { Database } from './database.ts'
import {
  CallerFailed,
  type Enqueued,
  enqueueAll,
  original,
  type Requests,
  type Send,
  storeBatch,
  withoutIndex,
} from './enqueue.ts'
import { JobVerbs } from './job-verbs.ts'
import { checkOperator, type Operator } from './operator.ts'
import { type QueueSettings, settingsWire } from './queue-settings.ts'
import type { Queryable } from './seam.ts'

/** What an enqueue middleware sees: the requests of one statement, which it may replace. */
export interface EnqueueContext {
  requests: readonly AnyRequest[]
  /** Whether the caller's own transaction carries the call. */
  readonly inTransaction: boolean
}

/** Wraps each statement of an enqueue. Tracing, tenancy and redaction hang on it. */
export type EnqueueMiddleware = (
  context: EnqueueContext,
  next: () => Promise<readonly Enqueued[]>,
) => Promise<readonly Enqueued[]>

/** The verbs, on connections of a database or in one transaction of the caller's. */
export class Verbs extends JobVerbs {
  readonly #middleware: EnqueueMiddleware[]

  constructor(database: Database, queryable: Queryable | undefined, middleware: EnqueueMiddleware[]) {
    super(database, queryable)
    this.#middleware = middleware
  }

  /**
   * Put one job in.
   *
   * Transaction: may run in the caller's: the job then exists when, and only if, it commits.
   * Errors: INVALID_OPTION, INPUT_NOT_STORABLE, INPUT_TOO_LARGE, INPUT_REFUSED, before anything is sent;
   * DATABASE_UNAVAILABLE; OUTCOME_UNKNOWN when the answer was lost: a dedupe key makes the repeat safe.
   * Source: sql/functions/store.sql
   */
  async enqueue<J extends AnyJob>(job: J, input: InputOf<J>, options?: EnqueueOptions): Promise<Enqueued> {
    if (!isJobDefinition(job)) {
      throw new RowlockError('INVALID_OPTION', 'enqueue takes a job that defineJob made', { path: 'job' })
    }
    const request: AnyRequest = { definition: job, input, ...(options !== undefined && { options }) }
    try {
      const [result] = await this.#send([request], this.queryable)
      return result!
    } catch (error) {
      throw withoutIndex(original(error))
    }
  }

  /**
   * Put many jobs in: all or none, results in order. Takes arrays, iterables and async iterables of `job.with(…)`.
   *
   * Transaction: one statement up to 1,000 jobs; more are one transaction, or a savepoint in the caller's. The server
   * ends one of ours when a source that is read as it goes pauses for more than ten minutes.
   * Errors: as enqueue, with the `index` of the job at fault.
   * Source: sql/functions/store.sql
   */
  async enqueueMany(requests: Requests): Promise<Enqueued[]> {
    return enqueueAll(this.database, this.queryable, requests, this.#send)
  }

  /**
   * Stop claims of a queue; what runs goes on. Answers whether anything changed.
   *
   * Source: sql/functions/pause.sql
   */
  async pause(queue: string, operator: Operator = {}): Promise<boolean> {
    return (await this.#onQueue('pause', queue, operator)) === 'true'
  }

  /**
   * Let a paused queue be claimed again. Answers whether anything changed.
   *
   * Source: sql/functions/resume.sql
   */
  async resume(queue: string, operator: Operator = {}): Promise<boolean> {
    return (await this.#onQueue('resume', queue, operator)) === 'true'
  }

  /**
   * Change settings of a queue; what is absent stays, null is back to the default.
   *
   * Errors: INVALID_OPTION.
   * Source: sql/functions/set_queue.sql
   */
  async setQueue(queue: string, settings: QueueSettings, operator: Operator = {}): Promise<void> {
    const wire = settingsWire(settings)
    await this.#onQueue('set_queue', queue, operator, '$4::text::jsonb', [JSON.stringify(wire)])
  }

  readonly #send: Send = async (requests, queryable) => {
    const { length } = requests
    const context: EnqueueContext = { requests, inTransaction: this.queryable !== undefined }
    if (this.#middleware.length === 0) return storeBatch(this.database, queryable, requests)
    let ours: unknown
    const run = async (n: number): Promise<readonly Enqueued[]> => {
      const middleware = this.#middleware[n]
      if (middleware !== undefined) {
        return oneEach(
          await middleware(context, () => run(n + 1)),
          length,
          'must return what next() answered',
        )
      }
      try {
        return await storeBatch(
          this.database,
          queryable,
          oneEach(context.requests, length, 'may replace jobs'),
        )
      } catch (error) {
        ours = error
        throw error
      }
    }
    try {
      return await run(0)
    } catch (error) {
      if (error === ours || error instanceof RowlockError) throw error
      throw new CallerFailed('an enqueue middleware threw', { cause: error })
    }
  }

  #onQueue<T>(
    verb: string,
    queue: string,
    operator: Operator,
    more = '',
    values: unknown[] = [],
  ): Promise<T> {
    const { actor, reason } = checkOperator(operator)
    const args = `$1::text, ${more}${more && ', '}$2::text, $3::text`
    return this.call<T>(verb, args, [checkQueue(queue), actor ?? null, reason ?? null, ...values])
  }
}

/** Results answer requests by their place, so a middleware may neither drop nor add any. */
function oneEach<T>(list: readonly T[], length: number, what: string): readonly T[] {
  if (Array.isArray(list) && list.length === length) return list
  throw new RowlockError('INVALID_OPTION', `an enqueue middleware ${what}: one for each of ${length}`, {
    path: 'middleware',
  })
}
