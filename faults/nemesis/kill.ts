// SIGKILL of a worker; another takes its place.

import type { Nemesis } from '../context.ts'

export const kill: Nemesis = {
  name: 'kill',
  weight: 0.5,
  async inflict({ crew }, dice) {
    const victim = dice.pick(crew.members)
    if (victim === undefined) return 'nobody is there'
    await crew.kill(victim)
    return `process ${victim.pid}`
  },
}
