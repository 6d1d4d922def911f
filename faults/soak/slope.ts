// Whether a figure grows: the line of least squares through its samples, and how sure its slope is. Pure.

/** One sample of a figure. */
export interface Sample {
  /** Unit: hours. */
  readonly hours: number
  readonly value: number
}

/** The line through them. Slope and interval are in per cent of the mean, an hour. */
export interface Slope {
  readonly mean: number
  readonly percentPerHour: number
  /** The interval that holds the slope as surely as was asked. */
  readonly low: number
  readonly high: number
}

/** A slope below this is none. Unit: per cent an hour. */
export const LIMIT_PERCENT = 1
/** Fewer samples say nothing. */
export const FEWEST = 8

/** How sure an interval is, in standard deviations of the normal distribution. */
export const SURE = {
  '95 %': 1.959963984540054,
  '99.9 %': 3.290526731491926,
} as const

/** Fit it. Throws where there are too few samples, or all of them at one time. */
export function slopeOf(samples: readonly Sample[], sure: keyof typeof SURE = '95 %'): Slope {
  const count = samples.length
  if (count < FEWEST) throw new RangeError(`${count} samples are too few: ${FEWEST} at least`)
  const meanOf = (of: (one: Sample) => number) => samples.reduce((sum, one) => sum + of(one), 0) / count
  const middle = meanOf(({ hours }) => hours)
  const mean = meanOf(({ value }) => value)
  let spread = 0
  let product = 0
  for (const { hours, value } of samples) {
    spread += (hours - middle) ** 2
    product += (hours - middle) * (value - mean)
  }
  if (spread === 0) throw new RangeError('all samples are of one time')
  const slope = product / spread
  let rest = 0
  for (const { hours, value } of samples) rest += (value - mean - slope * (hours - middle)) ** 2
  const error = Math.sqrt(rest / (count - 2) / spread)
  const reach = quantile(count - 2, SURE[sure]) * error
  const percent = (value: number) => (value === 0 ? 0 : (100 * value) / mean)
  return { mean, percentPerHour: percent(slope), low: percent(slope - reach), high: percent(slope + reach) }
}

/** At least the limit, and surely above nothing. */
export function grows({ percentPerHour, low }: Slope): boolean {
  return percentPerHour >= LIMIT_PERCENT && low > 0
}

/**
 * What `z` of the normal distribution is in Student's t.
 *
 * Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5; from 6 degrees of freedom on it is right
 * to two digits after the point for 95 %.
 */
export function quantile(freedom: number, z: number = SURE['95 %']): number {
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92_160,
  ]
  return terms.reduce((sum, term, n) => sum + term / freedom ** (n + 1), z)
}
