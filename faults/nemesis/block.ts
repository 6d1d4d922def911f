// The event loop of a worker is held up: a busy library, a long collection of garbage.

import type { Nemesis } from '../context.ts'

export const block: Nemesis = {
  name: 'block',
  async inflict({ crew, leaseMs }, dice) {
    const victim = dice.pick(crew.members)
    const ms = Math.round(dice.between(0.2, 1.8) * leaseMs)
    if (victim === undefined) return 'nobody is there'
    crew.block(victim, ms)
    return `process ${victim.pid} for ${ms} ms`
  },
}
