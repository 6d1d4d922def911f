// Every look at jobs, queues and workers, typed, over the SQL functions. Each method is a line; what it asks and how
// its answer is read stands in a file beside this one. Nothing here changes anything.

import { RowlockError } from '../ground/errors.ts'
import { show } from '../ground/show.ts'
import type { Database } from './database.ts'
import { findJob, type JobRow } from './find-job.ts'
import type { Queryable } from './seam.ts'

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
}

/** Check the id of a job: a string of digits, above 0 and below 2⁶³. Errors: INVALID_OPTION. */
export function checkId(id: unknown, path = 'id'): string {
  if (typeof id === 'string' && /^[1-9]\d{0,18}$/.test(id) && BigInt(id) < 2n ** 63n) return id
  throw new RowlockError('INVALID_OPTION', `a job's id is a string of digits; got ${show(id, 40)}`, { path })
}
