// A list read page by page: each look at the database is bounded, so a page may be short though there is more. Goes on
// by itself, says how far it looked, and can be interrupted.

import type { JobFilter, ListedJob } from '../index.ts'
import type { Shell } from './shell.ts'

export interface Pages {
  /** How many jobs at most; undefined: all. */
  readonly limit?: number | undefined
  readonly before?: string | undefined
}

export interface Looked {
  readonly jobs: number
  /** From where to go on; null when everything was looked at. */
  readonly next: string | null
  readonly isInterrupted: boolean
}

const PAGE = 1_000
const SAY_EVERY_MS = 2_000

/** Look for jobs and hand them on as they are found. */
export async function lookAtJobs(
  shell: Shell,
  filter: JobFilter,
  { limit, before }: Pages,
  onJobs: (jobs: readonly ListedJob[]) => Promise<void>,
): Promise<Looked> {
  const rowlock = await shell.client()
  return shell.interruptible(async (signal) => {
    let next: string | null | undefined = before
    let found = 0
    let saidAt = shell.io.now()
    while (next !== null && (limit === undefined || found < limit) && !signal.aborted) {
      const most = Math.min(PAGE, limit === undefined ? PAGE : limit - found)
      const page = await rowlock.jobs(filter, { limit: most, ...(next !== undefined && { before: next }) })
      if (page.jobs.length > 0) await onJobs(page.jobs)
      found += page.jobs.length
      next = page.next
      if (next !== null && shell.io.now() - saidAt > SAY_EVERY_MS) {
        shell.say(`… looked back to job ${next}, found ${found}; Ctrl-C ends it there`)
        saidAt = shell.io.now()
      }
    }
    return { jobs: found, next: next ?? null, isInterrupted: signal.aborted && next !== null }
  }, false)
}
