// A worker whose clock is wrong takes the place of one whose clock is right.

import type { Nemesis } from '../context.ts'

const HOUR_MS = 3_600_000

export const skew: Nemesis = {
  name: 'skew',
  weight: 0.3,
  async inflict({ crew }, dice) {
    const victim = dice.pick(crew.members)
    const ms = dice.pick([-24 * HOUR_MS, -HOUR_MS, -5_000, 5_000, HOUR_MS, 400 * 24 * HOUR_MS])!
    if (victim === undefined) return 'nobody is there'
    // First the successor: the crew would fill the place with one whose clock is right.
    crew.spawn(ms)
    await crew.kill(victim)
    return `${ms} ms in place of process ${victim.pid}`
  },
}
