// What a soak amounts to: one line of JSON, and a table for people.

import type { SoakResult } from './run.ts'
import { FEWEST, grows, LIMIT_PERCENT, type Slope, slopeOf } from './slope.ts'

/** One series, judged. */
export interface Judged extends Slope {
  readonly who: string
  readonly what: string
  readonly when: string
  readonly samples: number
  readonly first: number
  readonly last: number
  readonly grows: boolean
}

/** The figures of a soak. Those of BAD are 0 when all is well. */
export interface SoakAccount {
  readonly minutes: number
  readonly warmup: number
  readonly seed: number
  readonly enqueued: number
  readonly finished: number
  /** Series that grow. */
  readonly growing: number
  readonly unbalanced: number
  readonly unexpected_exits: number
  readonly [more: string]: unknown
  readonly series: readonly Judged[]
}

const BAD = ['growing', 'unbalanced', 'unexpected_exits'] as const

/**
 * Judge each series that has enough samples. At work figures jump with the jobs of the moment, and there are many of
 * them: one of forty would seem to grow in each soak, were it enough to be sure by 95 %.
 */
export function judge({ series }: Pick<SoakResult, 'series'>): Judged[] {
  return series
    .filter(({ samples }) => samples.length >= FEWEST)
    .map(({ who, what, when, samples }) => {
      const slope = slopeOf(samples, when === 'at rest' ? '95 %' : '99.9 %')
      const [first, last] = [samples[0]!.value, samples.at(-1)!.value]
      return { who, what, when, samples: samples.length, first, last, ...slope, grows: grows(slope) }
    })
}

/** Count it up. Throws where there is nothing to judge: that is no proof. */
export function accountOf(minutes: number, warmup: number, seed: number, result: SoakResult): SoakAccount {
  const { counts, ended, unbalanced, mishaps, warnings } = result
  const series = judge(result)
  if (series.length === 0) throw new RangeError('no series has enough samples to be judged')
  const growing = series.filter((one) => one.grows)
  return {
    minutes,
    warmup,
    seed,
    enqueued: counts.created,
    finished: Object.values(ended).reduce((sum, jobs) => sum + jobs, 0),
    growing: growing.length,
    unbalanced: unbalanced.length,
    unexpected_exits: mishaps.length,
    deduped: counts.deduped,
    rolled_back: counts.rolledBack,
    called_off: counts.calledOff,
    pauses: counts.pauses,
    ended,
    says: [...growing.map(nameOf), ...unbalanced, ...mishaps].slice(0, 50),
    warnings,
    series: series.map((one) => ({
      ...one,
      mean: rounded(one.mean),
      percentPerHour: rounded(one.percentPerHour),
      low: rounded(one.low),
      high: rounded(one.high),
    })),
  }
}

/** Is something as it should not be? */
export function isBad(account: SoakAccount): boolean {
  return BAD.some((figure) => account[figure] !== 0)
}

/** A line for each series, for people. */
export function tableOf({ series }: SoakAccount): string {
  const rows = series.map((one) => [
    one.who,
    one.what,
    one.when,
    String(one.samples),
    String(one.first),
    String(one.last),
    one.mean.toFixed(1),
    one.percentPerHour.toFixed(2),
    `${one.low.toFixed(2)} to ${one.high.toFixed(2)}`,
    one.grows ? 'GROWS' : one.percentPerHour < LIMIT_PERCENT ? 'below 1 %' : 'around 0',
  ])
  const head = ['who', 'what', 'when', 'samples', 'first', 'last', 'mean', '% an hour', 'interval', 'verdict']
  const widths = head.map((name, n) => Math.max(name.length, ...rows.map((row) => row[n]!.length)))
  const isNumber = (n: number) => n >= 3 && n <= 8
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, n) => (isNumber(n) ? cell.padStart(widths[n]!) : cell.padEnd(widths[n]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const nameOf = ({ who, what, when }: Judged) => `${what} of ${who} ${when} grows`
const rounded = (value: number) => Math.round(value * 1_000) / 1_000
