// How long a failed job waits: policies as data, and the one rule that reads them. SQL states the same rule.
import { type Duration, describeMs, durationMs } from './duration.ts'
import { RowlockError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { checkOptions, suggest } from './nearest.ts'
import { show } from './show.ts'

/** Waits that double, with full jitter above the minimum. Unit: ms. `factor` default 2, 1 to 10. */
export interface ExponentialBackoff {
  readonly type: 'exponential'
  readonly min_ms: number
  readonly max_ms: number
  readonly factor?: number
}

/** The same wait each time, exactly. Unit: ms. */
export interface FixedBackoff {
  readonly type: 'fixed'
  readonly delay_ms: number
}

/** One wait per failure, exactly; the last repeats. Unit: ms. */
export interface ListBackoff {
  readonly type: 'list'
  readonly delays_ms: readonly number[]
}

/**
 * A retry policy, in the form in which it is stored. Make one with {@link exponential}, {@link fixed} or
 * {@link list}.
 */
export type Backoff = ExponentialBackoff | FixedBackoff | ListBackoff

const MIN = { min: LIMITS.backoffMinMs.min, max: LIMITS.backoffMinMs.max }
const MAX = { min: LIMITS.backoffMaxMs.min, max: LIMITS.backoffMaxMs.max }

// Beyond any number of failures a job can have, and far from overflow: 10^128 × 30 days is a finite double.
const STEEPEST = 128

/**
 * Wait longer after each failure: between `min` and min × factor^failures, at random, never above `max`.
 *
 * Unit: `min` default 5s, `max` default 1h, each 0 to 30d; `factor` default 2, 1 to 10. A `min` of 0 stays 0.
 * Errors: INVALID_OPTION, also when `min` is above `max`.
 * @example
 * defineJob('send-email', { retry: { maxAttempts: 8, backoff: exponential({ min: '1s', max: '1h' }) } })
 */
export function exponential(
  options: { readonly min?: Duration; readonly max?: Duration; readonly factor?: number } = {},
): ExponentialBackoff {
  checkOptions(options, ['min', 'max', 'factor'], 'exponential')
  const { min = LIMITS.backoffMinMs.default, max = LIMITS.backoffMaxMs.default, factor } = options
  return makeExponential(
    durationMs(min, { name: 'min', ...MIN }),
    durationMs(max, { name: 'max', ...MAX }),
    factor,
    { min: 'min', max: 'max', factor: 'factor' },
  )
}

/** Wait the same time after each failure. Unit: 0 to 30d. Errors: INVALID_OPTION. */
export function fixed(delay: Duration): FixedBackoff {
  return Object.freeze({ type: 'fixed', delay_ms: durationMs(delay, { name: 'delay', ...MAX }) })
}

/**
 * Wait as the list says, failure by failure; its last wait repeats.
 *
 * Unit: 1 to 100 waits, each 0 to 30d.
 * Errors: INVALID_OPTION.
 */
export function list(delays: readonly Duration[]): ListBackoff {
  return makeList(delays, 'delays')
}

/** What a job has when nobody said otherwise: exponential, 5s to 1h. */
export const DEFAULT_BACKOFF: ExponentialBackoff = exponential()

/**
 * Check a policy that was written by hand or read from somewhere, and return a frozen copy of it.
 *
 * Errors: INVALID_OPTION, with the field as path.
 */
export function checkBackoff(value: unknown, path = 'backoff'): Backoff {
  const type = (value as Partial<Backoff> | null | undefined)?.type
  const at = `${path}.`
  switch (type) {
    case 'exponential': {
      checkOptions(value, ['type', 'min_ms', 'max_ms', 'factor'], path, at)
      const { min_ms, max_ms, factor } = value as ExponentialBackoff
      const names = { min: `${at}min_ms`, max: `${at}max_ms`, factor: `${at}factor` }
      const min = durationMs(min_ms, { name: names.min, ...MIN })
      return makeExponential(min, durationMs(max_ms, { name: names.max, ...MAX }), factor, names)
    }
    case 'fixed':
      checkOptions(value, ['type', 'delay_ms'], path, at)
      return Object.freeze({
        type,
        delay_ms: durationMs((value as FixedBackoff).delay_ms, { name: `${at}delay_ms`, ...MAX }),
      })
    case 'list':
      checkOptions(value, ['type', 'delays_ms'], path, at)
      return makeList((value as ListBackoff).delays_ms as readonly Duration[], `${at}delays_ms`)
    default: {
      const known = ['exponential', 'fixed', 'list']
      const hint = typeof type === 'string' ? `; ${suggest(type, known)}` : '.'
      const message = `${path} must be made by exponential(), fixed() or list(); got ${show(value)}${hint}`
      throw new RowlockError('INVALID_OPTION', message, { path })
    }
  }
}

/**
 * How long a job waits after its n-th failure. Always a whole number with 0 ≤ delay ≤ the policy's greatest.
 *
 * Unit: ms; `failures` from 1; what is less counts as 1.
 * Exponential: ceiling = min(max, min × factor^min(failures, 128)); delay = floor(min + random × (ceiling − min)).
 * Fixed: delay. List: the delay at min(failures, length), counted from 1.
 * Source: "full jitter" above a floor, https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 */
export function backoffMs(
  policy: Backoff | undefined,
  failures: number,
  random: () => number = Math.random,
): number {
  const chosen = policy ?? DEFAULT_BACKOFF
  const count = failures >= 1 ? Math.floor(failures) : 1
  switch (chosen.type) {
    case 'fixed':
      return chosen.delay_ms
    case 'list':
      return chosen.delays_ms[Math.min(count, chosen.delays_ms.length) - 1]!
    case 'exponential': {
      const { min_ms: min, max_ms: max, factor = LIMITS.backoffFactor.default } = chosen
      const ceiling = Math.min(max, min * factor ** Math.min(count, STEEPEST))
      return Math.floor(min + Math.min(1, Math.max(0, random() || 0)) * (ceiling - min))
    }
  }
}

function makeExponential(
  min: number,
  max: number,
  factor: number | undefined,
  names: { readonly min: string; readonly max: string; readonly factor: string },
): ExponentialBackoff {
  if (min > max) {
    const message = `${names.min} (${describeMs(min)}) must not be above ${names.max} (${describeMs(max)}).`
    throw new RowlockError('INVALID_OPTION', message, { path: names.min })
  }
  if (factor === undefined) return Object.freeze({ type: 'exponential', min_ms: min, max_ms: max })
  const { min: least, max: most } = LIMITS.backoffFactor
  if (typeof factor !== 'number' || !(factor >= least && factor <= most)) {
    const message = `${names.factor} must be a number from ${least} to ${most}; got ${show(factor)}.`
    throw new RowlockError('INVALID_OPTION', message, { path: names.factor })
  }
  return Object.freeze({ type: 'exponential', min_ms: min, max_ms: max, factor })
}

function makeList(delays: readonly Duration[], path: string): ListBackoff {
  const { min, max } = LIMITS.backoffSteps
  if (!Array.isArray(delays) || delays.length < min || delays.length > max) {
    const message = `${path} must be an array of ${min} to ${max} durations; got ${show(delays)}.`
    throw new RowlockError('INVALID_OPTION', message, { path })
  }
  const delays_ms = Array.from(delays, (delay, i) => durationMs(delay, { name: `${path}[${i}]`, ...MAX }))
  return Object.freeze({ type: 'list', delays_ms: Object.freeze(delays_ms) })
}
