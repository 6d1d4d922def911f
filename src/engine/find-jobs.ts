// Jobs by a filter: a page, page after page, and how many there are. What a filter means stands in SQL.

import { filterText, type JobFilter } from '../ground/filter.ts'
import { LIMITS } from '../ground/limits.ts'
import type { JobRow } from './find-job.ts'
import { look, type PageOptions, type Place, pageArgs } from './look.ts'
import { named } from './named.ts'

/** A job in a list: all that `rowlock.job` shows but input, result and attempts, which `job(id)` has. */
export type ListedJob = Omit<JobRow, 'input' | 'result' | 'attempts'>

/** A page of jobs, newest first. */
export interface JobPage {
  readonly jobs: readonly ListedJob[]
  /** Where the next page starts; null: nothing older fits. A page may be short, even empty, with a `next`. */
  readonly next: string | null
}

/** How many jobs there are. */
export interface JobCount {
  readonly count: number
  /** The count is estimated. */
  readonly about: boolean
}

/** A page of the jobs that fit. Source: sql/functions/jobs_page.sql */
export async function findJobs(place: Place, filter: JobFilter, page: PageOptions): Promise<JobPage> {
  const values = [filterText(filter), ...pageArgs(page, 'jobs')]
  const args = '$1::text::jsonb, $2::text::integer, $3::text::bigint'
  const { jobs, next } = await look<{ jobs: Record<string, unknown>[]; next: string | null }>(
    place,
    'jobs_page',
    args,
    values,
  )
  return { jobs: jobs.map(listed), next }
}

/** Every job that fits, page after page. Memory holds one page. */
export async function* eachJob(place: Place, filter: JobFilter): AsyncGenerator<ListedJob, void, undefined> {
  let before: string | undefined
  do {
    const { jobs, next } = await findJobs(place, filter, { limit: LIMITS.pageJobs.max, before })
    yield* jobs
    before = next ?? undefined
  } while (before !== undefined)
}

/** How many jobs fit. Source: sql/functions/count_jobs.sql */
export async function countJobs(place: Place, filter: JobFilter): Promise<JobCount> {
  return look<JobCount>(place, 'count_jobs', '$1::text::jsonb', [filterText(filter)])
}

function listed({ metadata, error, backoff, ...columns }: Record<string, unknown>): ListedJob {
  return { ...named(columns), metadata, error, backoff } as unknown as ListedJob
}
