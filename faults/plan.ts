// What befalls a run, and when: made from a seed before it begins, so that it can be written down and replayed.

import type { Nemesis } from './context.ts'
import { diceOf } from './random.ts'

/** One fault at its time. Everything else that chance decides in it comes from `seed`. */
export interface Act {
  readonly atMs: number
  readonly fault: string
  readonly seed: number
}

const PAUSE_MS = { low: 200, high: 800 }

/** A random subset of the faults, one of them every 200 to 800 ms, and so much more rarely. */
export function planOf(seed: number, seconds: number, nemeses: readonly Nemesis[], paceMs = 0): Act[] {
  const dice = diceOf(seed)
  const share = dice.between(0.3, 0.8)
  const chosen = nemeses.filter(() => dice.chance(share))
  const on = chosen.length > 0 ? chosen : [dice.pick(nemeses)!]
  const pick = () => dice.weigh(on, ({ weight = 1 }) => weight)
  const acts: Act[] = []
  for (let at = dice.between(0, PAUSE_MS.high); at < seconds * 1_000; ) {
    acts.push({ atMs: Math.round(at), fault: pick().name, seed: dice.whole(2 ** 32) })
    at += paceMs + dice.between(PAUSE_MS.low, PAUSE_MS.high)
  }
  return acts
}

/** The acts that a log of a run names: lines of JSON, others are passed by. */
export function planFrom(log: string): Act[] {
  return log.split('\n').flatMap((line) => {
    if (!line.startsWith('{')) return []
    const { atMs, fault, seed } = JSON.parse(line) as Partial<Act>
    return atMs === undefined || fault === undefined || seed === undefined ? [] : [{ atMs, fault, seed }]
  })
}
