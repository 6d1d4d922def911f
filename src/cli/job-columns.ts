// A job in one line: the columns of every list of jobs.

import type { ListedJob } from '../index.ts'
import { instant, span } from './amounts.ts'
import { STATE_STYLES } from './paint.ts'
import type { Column } from './table.ts'

const EMPTY = ''

/** The columns; times are told from `now`. */
export function jobColumns(now: Date): readonly Column<ListedJob>[] {
  return [
    { head: 'ID', of: (job) => job.id, isNumber: true },
    { head: 'STATE', of: (job) => job.state, style: (job) => STATE_STYLES[job.state] },
    { head: 'KIND', of: (job) => job.kind, min: 22 },
    { head: 'QUEUE', of: (job) => job.queue, min: 12, weight: 6 },
    { head: 'WHEN', of: (job) => whenOf(job, now), min: 9 },
    {
      head: 'TRIES',
      of: (job) => (job.attempt === 0 ? '–' : String(job.attempt)),
      isNumber: true,
      weight: 4,
    },
    {
      head: 'PRIO',
      of: (job) => (job.priority === 0 ? EMPTY : String(job.priority)),
      isNumber: true,
      isOptional: true,
      weight: 2,
    },
    { head: 'CAUSE', of: (job) => causeOf(job), isOptional: true, min: 10, weight: 5 },
    { head: 'TENANT', of: (job) => job.tenantId ?? EMPTY, isOptional: true, min: 10, weight: 1 },
    { head: 'DEDUPE KEY', of: (job) => job.dedupeKey ?? EMPTY, isOptional: true, min: 16, weight: 3 },
    { head: 'ENQUEUED', of: (job) => instant(job.enqueuedAt), weight: 0 },
  ]
}

/**
 * When it is due, since when it runs, or how long ago it ended. That a claimed job has started is told by a later beat:
 * so long it is only said that it is claimed.
 */
function whenOf(job: ListedJob, now: Date): string {
  const past = (at: Date) => `${span(Math.max(0, now.getTime() - at.getTime()))}`
  const isAhead = job.availableAt > now
  switch (job.state) {
    case 'queued':
    case 'retryable':
      return isAhead
        ? `in ${span(job.availableAt.getTime() - now.getTime())}`
        : `due for ${past(job.availableAt)}`
    case 'running':
      return job.startedAt === null
        ? `claimed ${past(job.claimedAt ?? job.availableAt)}`
        : `for ${past(job.startedAt)}`
    default:
      return job.finishedAt === null ? EMPTY : `${past(job.finishedAt)} ago`
  }
}

function causeOf(job: ListedJob): string {
  return job.cause ?? (job.state === 'cancelled' ? (job.reason ?? EMPTY) : EMPTY)
}
