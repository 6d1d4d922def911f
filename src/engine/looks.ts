// Every look at jobs, queues and workers, typed, over the SQL functions. Each method is a line; what it asks and how
// its answer is read stands in a file beside this one. Nothing here changes anything.

import type { ChangeFilter, JobFilter } from '../ground/filter.ts'
import { checkId } from '../ground/id.ts'
import { type ChangePage, findChanges } from './changes.ts'
import type { Database } from './database.ts'
import { type DeadLetterGroup, deadLetters } from './dead-letters.ts'
import { findJob, type JobRow } from './find-job.ts'
import { countJobs, eachJob, findJobs, type JobCount, type JobPage, type ListedJob } from './find-jobs.ts'
import type { PageOptions, Place } from './look.ts'
import { type QueueRow, type QueuesOptions, queue, queues } from './queues.ts'
import type { Queryable } from './seam.ts'
import { type StoryLine, story } from './story.ts'
import { type Reason, why } from './why.ts'
import { type WorkerRow, workers } from './workers.ts'

/** The looks, on connections of a database or in one transaction of the caller's. */
export class Looks {
  protected readonly database: Database
  protected readonly queryable: Queryable | undefined

  constructor(database: Database, queryable: Queryable | undefined) {
    this.database = database
    this.queryable = queryable
  }

  /**
   * A job in whatever phase it is, or null when none has this id.
   *
   * Source: sql/views/job.sql
   */
  async job(id: string): Promise<JobRow | null> {
    return findJob(this.database, this.queryable, checkId(id))
  }

  /**
   * A page of the jobs that a filter finds, newest first.
   *
   * Shape: `next` is where the page behind starts, null when nothing older fits. One call looks at 50,000 jobs at most,
   * so a page may be short, or empty, with a `next`.
   * Transaction: may run in the caller's, of any isolation; locks and writes nothing.
   * Errors: INVALID_OPTION.
   * Source: sql/functions/jobs_page.sql
   *
   * @example
   * const { jobs, next } = await rowlock.jobs({ state: 'failed', queue: 'email' }, { limit: 20 })
   */
  async jobs(filter: JobFilter = {}, page: PageOptions = {}): Promise<JobPage> {
    return findJobs(this.#place, filter, page)
  }

  /**
   * Every job that a filter finds, newest first, page after page, each a look of its own. Memory holds one page.
   *
   * Errors: INVALID_OPTION, when the first job is asked for.
   * Source: sql/functions/jobs_page.sql
   *
   * @example
   * for await (const job of rowlock.eachJob({ state: 'failed' })) console.log(job.id, job.cause)
   */
  eachJob(filter: JobFilter = {}): AsyncIterable<ListedJob> {
    return eachJob(this.#place, filter)
  }

  /**
   * How many jobs a filter finds: exact up to 10,000 where that is quickly told, else `about`.
   *
   * Errors: INVALID_OPTION.
   * Source: sql/functions/count_jobs.sql
   */
  async countJobs(filter: JobFilter = {}): Promise<JobCount> {
    return countJobs(this.#place, filter)
  }

  /**
   * Dead letters in groups of the same queue, kind, cause and error, the largest first.
   *
   * Errors: INVALID_OPTION.
   * Source: sql/functions/dead_letters.sql
   */
  async deadLetters(
    filter: JobFilter = {},
    options: Pick<PageOptions, 'limit'> = {},
  ): Promise<readonly DeadLetterGroup[]> {
    return deadLetters(this.#place, filter, options)
  }

  /**
   * A page of what people and programs changed, newest first: who, what, and why.
   *
   * Errors: INVALID_OPTION.
   * Source: sql/functions/changes_page.sql
   */
  async changes(filter: ChangeFilter = {}, page: PageOptions = {}): Promise<ChangePage> {
    return findChanges(this.#place, filter, page)
  }

  /**
   * What happened to a job, in order: its attempts, what people did to it and why, how it ended.
   *
   * Errors: JOB_NOT_FOUND.
   * Source: sql/functions/story.sql
   */
  async story(id: string): Promise<readonly StoryLine[]> {
    return story(this.#place, checkId(id))
  }

  /**
   * Why a job waits, how it runs, or how it ended: every reason with its evidence, the most important first.
   *
   * Transaction: may run in the caller's; locks and writes nothing.
   * Errors: JOB_NOT_FOUND.
   * Source: sql/functions/why.sql
   */
  async why(id: string): Promise<readonly Reason[]> {
    return why(this.#place, checkId(id))
  }

  /**
   * The queues by name, with what waits, runs and fails in them, who serves them, and how fast.
   *
   * Errors: INVALID_OPTION.
   * Source: sql/functions/queues.sql
   */
  async queues(options: QueuesOptions = {}): Promise<readonly QueueRow[]> {
    return queues(this.#place, options)
  }

  /**
   * One queue.
   *
   * Errors: QUEUE_NOT_FOUND when no job, worker, setting or change names it; INVALID_OPTION.
   * Source: sql/functions/queues.sql
   */
  async queue(name: string): Promise<QueueRow> {
    return queue(this.#place, name)
  }

  /**
   * The worker processes, the eldest first; also those whose lease is over, as long as they are not buried.
   *
   * Source: sql/functions/workers.sql
   */
  async workers(): Promise<readonly WorkerRow[]> {
    return workers(this.#place)
  }

  get #place(): Place {
    return { database: this.database, queryable: this.queryable }
  }
}
