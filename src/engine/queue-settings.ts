// Settings of a queue that can be changed while it runs: checked here, and as `set_queue` takes them.

import { type Duration, durationMs, intervalText } from '../ground/duration.ts'
import { RowlockError } from '../ground/errors.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS, type Limit, RETENTION_CLASSES_DAYS } from '../ground/limits.ts'
import { checkOptions } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'

/** How fast jobs of a queue may start: in any time t at most starts × t / per + burst of them. */
export interface Rate {
  /** Unit: 1 to 100,000. */
  readonly starts: number
  /** In which time. Unit: 1 ms to 30 days. */
  readonly per: Duration
  /** So many may start at once after a pause. Unit: 1 to 100,000; default what starts in 100 ms, at least 1. */
  readonly burst?: number | undefined
}

/** What becomes of jobs that are enqueued above `maxWaiting`. */
export const WHEN_FULL = ['refuse', 'drop'] as const

/** Settings of a queue that can be changed while it runs. */
export interface QueueSettings {
  /** How long history is kept. Unit: days, one of 0 (none), 1, 7, 30, 90. Default 7; null: back to it. */
  readonly retentionDays?: (typeof RETENTION_CLASSES_DAYS)[number] | null | undefined
  /** A due job should start within this time. Default 1 min; null: back to it. */
  readonly targetWait?: Duration | null | undefined
  /** Handlers of this queue that each worker runs at once. Unit: 1 to 1,000; null: as each was started with. */
  readonly concurrency?: number | null | undefined
  /** Jobs of the queue that run at once, over all workers. Unit: 1 to 100,000; null: no limit. */
  readonly maxRunning?: number | null | undefined
  /** How fast its jobs may start, over all workers; null: no limit. */
  readonly rate?: Rate | null | undefined
  /** About how many jobs may wait. Unit: 1 to 1,000,000,000; null: no limit. */
  readonly maxWaiting?: number | null | undefined
  /** What becomes of jobs above `maxWaiting`: `'refuse'`, the default, or `'drop'`. */
  readonly whenFull?: 'refuse' | 'drop' | null | undefined
}

const KNOWN = ['retentionDays', 'targetWait', 'concurrency', 'maxRunning', 'rate', 'maxWaiting', 'whenFull']

/** The settings as SQL names them. Errors: INVALID_OPTION. */
export function settingsWire(settings: QueueSettings): Record<string, unknown> {
  checkOptions(settings, KNOWN, 'setQueue')
  const { retentionDays, targetWait, concurrency, maxRunning, rate, maxWaiting, whenFull } = settings
  const { min, max } = LIMITS.targetWaitMs
  return {
    retention_days: given(retentionDays, (days) => word(days, RETENTION_CLASSES_DAYS, 'retentionDays')),
    target_wait: given(targetWait, (wait) =>
      intervalText(durationMs(wait, { name: 'targetWait', min, max })),
    ),
    concurrency: given(concurrency, (n) => whole(n, LIMITS.concurrency, 'concurrency')),
    max_running: given(maxRunning, (n) => whole(n, LIMITS.maxRunning, 'maxRunning')),
    rate: given(rate, rateWire),
    max_waiting: given(maxWaiting, (n) => whole(n, LIMITS.maxWaiting, 'maxWaiting')),
    when_full: given(whenFull, (what) => word(what, WHEN_FULL, 'whenFull')),
  }
}

function rateWire(rate: Rate): Record<string, unknown> {
  if (typeof rate !== 'object') {
    const message = `rate must be { starts, per, burst }; got ${show(rate)}`
    throw new RowlockError('INVALID_OPTION', message, { path: 'rate' })
  }
  checkOptions(rate, ['starts', 'per', 'burst'], 'rate', 'rate.')
  const { min, max } = LIMITS.ratePerMs
  return {
    starts: whole(rate.starts, LIMITS.rateStarts, 'rate.starts'),
    per: intervalText(durationMs(rate.per, { name: 'rate.per', min, max })),
    burst: given(rate.burst, (burst) => whole(burst, LIMITS.rateBurst, 'rate.burst')),
  }
}

/** What is absent stays absent, and null is null. */
function given<Value, Wire>(value: Value | null | undefined, read: (value: Value) => Wire) {
  return value === undefined || value === null ? (value as null | undefined) : read(value)
}

const whole = (value: number, { min, max }: Limit, name: string): number =>
  checkInteger(value, { name, min: min!, max: max! })

function word<Word>(value: Word, known: readonly Word[], path: string): Word {
  if (known.includes(value)) return value
  throw new RowlockError('INVALID_OPTION', `${path} must be one of ${known.join(', ')}`, { path })
}
