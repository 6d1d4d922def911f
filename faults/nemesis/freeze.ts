// SIGSTOP of a worker for half a lease to three of them, then SIGCONT: a machine that sleeps, a process that swaps.

import type { Nemesis } from '../context.ts'

export const freeze: Nemesis = {
  name: 'freeze',
  async inflict({ crew, leaseMs, pause }, dice) {
    const victim = dice.pick(crew.members)
    const ms = Math.round(dice.between(0.5, 3) * leaseMs)
    if (victim === undefined || crew.members.length === 1) return 'nobody may be frozen'
    crew.freeze(victim)
    await pause(ms)
    crew.thaw(victim)
    return `process ${victim.pid} for ${ms} ms`
  },
  async heal({ crew }) {
    crew.thaw()
  },
}
