// How a function that only looks is called: on a connection of the pool or in the caller's transaction, page by page.

import { checkId } from '../ground/id.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { checkOptions } from '../ground/nearest.ts'
import type { Database } from './database.ts'
import type { Queryable } from './seam.ts'

/** Where a look is sent: to a connection of the pool, or of the caller's. */
export interface Place {
  readonly database: Database
  readonly queryable: Queryable | undefined
}

/** Where a page starts, and how long it is. */
export interface PageOptions {
  /** At most so many. Unit: default 50, 1 to 1,000. */
  readonly limit?: number | undefined
  /** What the page before answered as `next`. */
  readonly before?: string | undefined
}

/** Call a function that answers JSON. */
export function look<T>(
  { database, queryable }: Place,
  name: string,
  args: string,
  values: unknown[],
): Promise<T> {
  if (queryable !== undefined) return database.callOn<T>(queryable, name, args, values)
  return database.call<T>(name, args, values)
}

/** The arguments of a page, checked. Errors: INVALID_OPTION. */
export function pageArgs(page: PageOptions, where: string): [limit: string, before: string | null] {
  checkOptions(page, ['limit', 'before'], where)
  const { default: usual, min, max } = LIMITS.pageJobs
  const limit = checkInteger(page.limit ?? usual, { name: 'limit', min, max })
  return [String(limit), page.before === undefined ? null : checkId(page.before, 'before')]
}
