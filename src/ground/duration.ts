// Spans of time as people write them, in one unit inside: whole milliseconds.
import { RowlockError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { show } from './show.ts'

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const
type Unit = keyof typeof UNITS

/** A span of time: milliseconds, or a number with its unit, as `'30s'`. `'30x'` does not compile. */
export type Duration = number | `${number}${Unit}`

// Plain decimals only. The type also admits what JavaScript calls a number ('1e3s', '0x10s'); nobody writes a
// timeout so, and SQL and the command line would each read it in their own way: refused.
const WRITTEN = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const LONGEST = 40

/**
 * Turn a duration into whole milliseconds, rounded.
 *
 * Unit: ms in, ms out. Bounds: `min` (default 0) to `max` (default ten years), compared before rounding.
 * Shape: a finite number, or plain decimal digits with a unit and nothing else: `'1.5h'` yes,
 * `'5'`, `'1e3s'`, `' 5s'` no.
 * Errors: INVALID_OPTION, with `name` as path and the bounds in words.
 */
export function durationMs(
  value: unknown,
  bounds: { readonly name: string; readonly min?: number; readonly max?: number },
): number {
  const { name, min = LIMITS.delayMs.min, max = LIMITS.delayMs.max } = bounds
  const ms = parse(value)
  if (ms !== undefined && ms >= min && ms <= max) return Math.round(ms) + 0
  const wanted =
    ms === undefined
      ? `${name} must be milliseconds as a number, or text such as '30s', '10m' or '2h'`
      : `${name} must be from ${describeMs(min)} to ${describeMs(max)}`
  const range = ms === undefined ? `, from ${describeMs(min)} to ${describeMs(max)}` : ''
  throw new RowlockError('INVALID_OPTION', `${wanted}${range}; got ${show(value)}.`, { path: name })
}

function parse(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isNaN(value) ? undefined : value
  if (typeof value !== 'string' || value.length > LONGEST) return undefined
  const [, digits, unit] = WRITTEN.exec(value) ?? []
  return digits === undefined ? undefined : Number(digits) * UNITS[unit as Unit]
}

/** Say milliseconds in the largest unit that needs no fraction: 30000 is `30s`, 1500 is `1500ms`. For messages. */
export function describeMs(ms: number): string {
  if (ms === 0) return '0s'
  for (const [unit, size] of Object.entries(UNITS)) {
    if (ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}

/**
 * A length as an interval that every PostgreSQL reads: before 15 none has more than 2^31 milliseconds, so in seconds.
 */
export function intervalText(ms: number): string {
  return `${ms / 1000}s`
}
