// Ours beside theirs: medians, ratios and tables of rounds that took turns.

import { medians, spreads } from './rounds.ts'
import type { Figures, ScenarioResult, Spread, Table } from './scenario.ts'

/** Figures of every contender, round by round. */
export type Samples = ReadonlyMap<string, readonly Figures[]>

/** Figures that are counted and not timed. */
export const COUNTED = [
  'pgCpuUs',
  'redisCpuUs',
  'nodeCpuUs',
  'walBytes',
  'commits',
  'statements',
  'buffers',
  'deadTuples',
] as const

/** What a figure is called in a table. */
export const TITLES: Readonly<Record<string, string>> = {
  perSecond: 'jobs/s',
  pgCpuUs: 'PostgreSQL CPU, µs',
  redisCpuUs: 'Redis CPU, µs',
  nodeCpuUs: 'Node CPU, µs',
  walBytes: 'WAL, bytes',
  commits: 'commits',
  statements: 'statements',
  buffers: 'buffers',
  deadTuples: 'dead tuples',
  idleP50Ms: 'p50, ms',
  idleP95Ms: 'p95, ms',
  idleP99Ms: 'p99, ms',
  flushP50Ms: 'a flush, p50, ms',
  steadyPerSecond: 'steady rate, jobs/s',
  busyP50Ms: 'p50, ms',
  busyP95Ms: 'p95, ms',
  busyP99Ms: 'p99, ms',
  heldP50Ms: 'p50, ms',
  heldP95Ms: 'p95, ms',
  heldP99Ms: 'p99, ms',
}

/** A row a contender, a column a figure; figures that nobody has are left out. */
export function versusTable(title: string, samples: Samples, figures: readonly string[]): Table {
  const rows = [...samples].map(([name, rounds]) => ({ name, all: spreads(rounds) }))
  const shown = figures.filter((figure) => rows.some(({ all }) => Number.isFinite(all[figure]?.median)))
  return {
    title,
    columns: ['', ...shown.map((figure) => TITLES[figure] ?? figure)],
    rows: rows.map(({ name, all }) => [name, ...shown.map((figure): Spread | null => all[figure] ?? null)]),
  }
}

/** The medians of each contender's counted figures. */
export function countedOf(samples: Samples): ScenarioResult['counted'] {
  return Object.fromEntries(
    [...samples].map(([name, rounds]) => {
      const all = medians(rounds)
      const counted = COUNTED.filter((figure) => Number.isFinite(all[figure]))
      return [name, Object.fromEntries(counted.map((figure) => [figure, rounded(all[figure]!)]))]
    }),
  )
}

/** Medians of some figures of all but one. */
export function peersOf(samples: Samples, ours: string, figures: readonly string[]): ScenarioResult['peers'] {
  const peers = [...samples].filter(([name]) => name !== ours)
  return Object.fromEntries(peers.map(([name, rounds]) => [name, picked(rounds, figures)]))
}

/** Medians of some figures. */
export function picked(rounds: readonly Figures[] = [], figures: readonly string[]): Figures {
  const all = medians(rounds)
  const there = figures.filter((figure) => Number.isFinite(all[figure]))
  return Object.fromEntries(there.map((figure) => [figure, rounded(all[figure]!)]))
}

/**
 * One figure of one contender by that of another: the median of the ratios within rounds, which a machine that is
 * slower in one round than in the next does not move. NaN when either did not take part.
 */
export function ratio(samples: Samples, figure: string, over: string, under: string): number {
  const [a = [], b = []] = [samples.get(over), samples.get(under)]
  const ratios = a.flatMap((sample, n) => {
    const [top, bottom] = [sample[figure], b[n]?.[figure]]
    return top === undefined || bottom === undefined ? [] : [{ ratio: top / bottom }]
  })
  return rounded(medians(ratios).ratio ?? Number.NaN)
}

/** One figure of each contender that has it, for a plot. */
export function pointsOf(samples: Samples, figure: string): { x: string; y: number }[] {
  return [...samples.keys()]
    .map((name) => ({ x: name, y: picked(samples.get(name), [figure])[figure] ?? Number.NaN }))
    .filter(({ y }) => Number.isFinite(y))
}

/** Ratios that are known. */
export function known(ratios: Readonly<Record<string, number>>): Figures {
  return Object.fromEntries(Object.entries(ratios).filter(([, value]) => Number.isFinite(value)))
}

function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : value
}
