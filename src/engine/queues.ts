// What the queues are like: settings, what is in them, who serves them, and how fast.

import { RowlockError } from '../ground/errors.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { checkQueue } from '../ground/names.ts'
import { checkOptions, nearest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import { isStorableText } from '../ground/text.ts'
import type { Place } from './look.ts'
import { namedRows } from './named.ts'

/** A queue as it is at this moment. A count whose `…About` is true is an estimate. */
export interface QueueRow {
  readonly queue: string
  readonly pausedAt: Date | null
  readonly pausedBy: string | null
  readonly pausedBecause: string | null
  /** Unit: days. */
  readonly retentionDays: number
  /** Unit: ms. */
  readonly targetWaitMs: number
  /** Null: as each worker was started with. */
  readonly concurrency: number | null
  /** Jobs that run at once, over all workers. Null: no limit. */
  readonly maxRunning: number | null
  /** How fast jobs start, over all workers. Unit: `perMs` in ms. Null: no limit. */
  readonly rate: { readonly starts: number; readonly perMs: number; readonly burst: number } | null
  /** When the rate allows the next start, where it allows none now. */
  readonly nextStartAt: Date | null
  /** About how many jobs may wait. Null: no limit. */
  readonly maxWaiting: number | null
  /** What becomes of jobs above `maxWaiting`; null where there is none. */
  readonly whenFull: 'refuse' | 'drop' | null
  readonly due: number
  readonly dueAbout: boolean
  readonly scheduled: number
  readonly scheduledAbout: boolean
  /** Those that are due as well count as both. */
  readonly retryable: number
  readonly retryableAbout: boolean
  /** Claimed jobs, those that still wait for a slot among them. */
  readonly running: number
  readonly deadLetters: number
  readonly deadLettersAbout: boolean
  readonly oldestDueAt: Date | null
  /** Unit: ms. */
  readonly oldestDueAgeMs: number | null
  /** The oldest due job waits longer than `targetWaitMs`. */
  readonly beyondTarget: boolean
  /** Living workers that serve it and do not drain. */
  readonly workers: number
  /** Handlers that these may run at once. */
  readonly slots: number
  /** What ended in the last minute, as the workers' last beats told it. */
  readonly donePerMinute: number
  /** Attempts that failed. */
  readonly failedPerMinute: number
  /** Of these, those whose jobs are tried again. */
  readonly retriedPerMinute: number
}

/** Which queues to list. */
export interface QueuesOptions {
  /** Unit: default 100, 1 to 1,000. */
  readonly limit?: number | undefined
  /** Only those whose name comes after this one: the next page. */
  readonly after?: string | undefined
}

const COLUMNS = `
  q.queue, q.paused_at, q.paused_by, q.paused_because, q.retention_days,
  rowlock.length_ms(q.target_wait) as target_wait_ms, q.concurrency, q.max_running,
  case when q.rate_starts is not null then json_build_object(
    'starts', q.rate_starts, 'perMs', rowlock.length_ms(q.rate_per), 'burst', q.rate_burst) end as rate,
  q.next_start_at, q.max_waiting, q.when_full, q.due, q.due_about, q.scheduled,
  q.scheduled_about, q.retryable, q.retryable_about, q.running, q.dead_letters, q.dead_letters_about,
  q.oldest_due_at, rowlock.length_ms(q.oldest_due_age) as oldest_due_age_ms, q.beyond_target, q.workers, q.slots,
  q.done_per_minute, q.failed_per_minute, q.retried_per_minute`

/** By name. Errors: INVALID_OPTION. Source: sql/functions/queues.sql */
export async function queues(place: Place, options: QueuesOptions): Promise<QueueRow[]> {
  checkOptions(options, ['limit', 'after'], 'queues')
  const { min, max, default: most } = LIMITS.queuesPerList
  const limit = checkInteger(options.limit ?? most, { name: 'limit', min, max })
  const after = options.after ?? ''
  if (typeof after !== 'string' || !isStorableText(after)) {
    throw new RowlockError('INVALID_OPTION', 'after must be the name of a queue', { path: 'after' })
  }
  const query = `select ${COLUMNS} from rowlock.queues(null, $1::text::integer, $2::text) as q`
  return namedRows<QueueRow>(place, query, [String(limit), after])
}

/** Errors: QUEUE_NOT_FOUND, INVALID_OPTION. Source: sql/functions/queues.sql */
export async function queue(place: Place, name: string): Promise<QueueRow> {
  const query = `select ${COLUMNS}, q.is_known from rowlock.queues($1::text) as q`
  const [row] = await namedRows<QueueRow & { isKnown: boolean }>(place, query, [checkQueue(name)])
  const { isKnown, ...known } = row!
  if (isKnown) return known
  const all = 'select q.queue from rowlock.queues(null, 1000) as q'
  const names = (await namedRows<{ queue: string }>(place, all, [])).map(({ queue }) => queue)
  const meant = nearest(name, names)
  const mean = meant === undefined ? '' : `; did you mean ${show(meant)}?`
  throw new RowlockError('QUEUE_NOT_FOUND', `no job, worker or setting names the queue ${show(name)}${mean}`)
}
