// Why a job is where it is: what keeps it from running, how it runs, or how it ended.

import type { Place } from './look.ts'
import { namedRows } from './named.ts'

/** The codes of reasons; they do not change. */
export type ReasonCode =
  /** It is to be cancelled, for it did not start in time. */
  | 'expired'
  /** Its time has not come. */
  | 'scheduled'
  /** It failed, and the next attempt is due later. */
  | 'retry_later'
  | 'paused'
  /** Somebody's transaction has its row. */
  | 'row_locked'
  | 'cancel_requested'
  /** As many jobs of its queue run as may. */
  | 'running_limit'
  /** As many jobs of its queue have started as may in the time: the next may start at `until`. */
  | 'rate_limit'
  /** Somebody's transaction has the limits of its queue. */
  | 'limits_locked'
  /** Nobody serves its queue. */
  | 'no_worker'
  /** Workers serve its queue, and none handles its kind. */
  | 'no_handler'
  | 'workers_draining'
  | 'workers_full'
  /** It was lost with its worker more than once, and is claimed alone. */
  | 'suspect'
  /** Others come first. */
  | 'behind'
  /** Nothing holds it: the next look takes it. */
  | 'due'
  /** It is cancelled at `until`, unless it has started. */
  | 'expires'
  /** Claimed, and waiting for a slot. */
  | 'prefetched'
  | 'running'
  /** It runs beyond its timeout. */
  | 'overdue'
  /** Its worker's lease is over: it is about to be given back. */
  | 'lease_over'
  | 'done'
  | 'failed'
  | 'cancelled'
  | 'dead_letter'

/** One reason why a job is where it is. */
export interface Reason {
  readonly reason: ReasonCode
  /** The reason as a sentence, with its evidence and what to do next. */
  readonly says: string
  readonly since: Date | null
  readonly until: Date | null
  /** The figures behind it, named as SQL names them; which ones depends on the reason. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** The most important first. Source: sql/functions/why.sql */
export async function why(place: Place, id: string): Promise<Reason[]> {
  return namedRows<Reason>(place, 'select * from rowlock.why($1::text::bigint)', [id])
}
