// Rounds that take turns (A B C A B C), and what is said of them: medians and spread.

import type { Figures, Spread } from './scenario.ts'

/** The value in the middle; of an even number, the mean of the two. Of none: NaN. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

/** The value below which a part of all lies (0.95: p95), by nearest rank. Of none: NaN. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN
}

/** Medians and spread of several rounds. */
export function spread(rounds: readonly number[]): Spread {
  return { median: median(rounds), min: Math.min(...rounds), max: Math.max(...rounds), rounds }
}

const NO_TIME = 'no time was left for it'

/**
 * Measure each contender once a round, in turns. The order turns by one each round, so that nobody always comes after
 * the same one. Who throws is out for the rest, and told to `onFailure`; without it the error is thrown. With a budget
 * no round is begun, but for the first, that would probably not end within it, and who has had no turn by then is out.
 */
export async function interleaved<T extends { readonly name: string }>(
  rounds: number,
  contenders: readonly T[],
  measure: (contender: T, round: number) => Promise<Figures>,
  onFailure?: (contender: T, error: unknown) => void,
  budgetMs = Number.POSITIVE_INFINITY,
): Promise<Map<string, Figures[]>> {
  const samples = new Map<string, Figures[]>(contenders.map(({ name }) => [name, []]))
  const began = performance.now()
  for (let round = 0; round < rounds; round++) {
    const tookMs = performance.now() - began
    if (round > 0 && tookMs + tookMs / round > budgetMs) break
    for (let turn = 0; turn < contenders.length; turn++) {
      const contender = contenders[(turn + round) % contenders.length]!
      const mine = samples.get(contender.name)
      if (mine === undefined) continue
      try {
        if (mine.length === 0 && turn > 0 && performance.now() - began > budgetMs) throw new Error(NO_TIME)
        mine.push(await measure(contender, round))
      } catch (error) {
        if (onFailure === undefined) throw error
        samples.delete(contender.name)
        onFailure(contender, error)
      }
    }
  }
  return samples
}

/** Figures of several rounds, each with its spread. */
export function spreads(samples: readonly Figures[]): Record<string, Spread> {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))]
  return Object.fromEntries(
    names.map((name) => [
      name,
      spread(samples.map((each) => each[name]).filter((n): n is number => n !== undefined)),
    ]),
  )
}

/** Only the medians. */
export function medians(samples: readonly Figures[]): Record<string, number> {
  return Object.fromEntries(Object.entries(spreads(samples)).map(([name, each]) => [name, each.median]))
}
