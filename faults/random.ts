// Chance that can be repeated: one seed, one row of figures.

/** Throws of the dice, all from one seed. */
export interface Dice {
  /** 0 to below 1. */
  roll(): number
  /** From `low` to below `high`. */
  between(low: number, high: number): number
  /** A whole number from 0 to below `count`. */
  whole(count: number): number
  /** One of them; undefined of none. */
  pick<T>(list: readonly T[]): T | undefined
  /** One of them, the heavier ones more often. There must be one. */
  weigh<T>(list: readonly T[], weightOf: (one: T) => number): T
  /** Whether it falls into this share. */
  chance(share: number): boolean
}

/** Source: mulberry32, by Tommy Ettinger, public domain. */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0
  const roll = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (count: number) => Math.floor(roll() * count)
  return {
    weigh<T>(list: readonly T[], weightOf: (one: T) => number) {
      let left = roll() * list.reduce((sum, one) => sum + weightOf(one), 0)
      for (const one of list) {
        left -= weightOf(one)
        if (left < 0) return one
      }
      return list[0]!
    },
    roll,
    whole,
    between: (low, high) => low + roll() * (high - low),
    pick: (list) => list[whole(list.length)],
    chance: (share) => roll() < share,
  }
}
