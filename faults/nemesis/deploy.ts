// A worker is told to stop, with little grace or none; another takes its place.

import type { Nemesis } from '../context.ts'

export const deploy: Nemesis = {
  name: 'deploy',
  weight: 0.3,
  async inflict({ crew }, dice) {
    const victim = dice.pick(crew.members)
    const graceMs = dice.pick([0, 100, 1_000])!
    if (victim === undefined) return 'nobody is there'
    await crew.replace(victim, graceMs)
    return `process ${victim.pid} with a grace of ${graceMs} ms`
  },
}
