// The server is restarted, in good order or as after a crash.

import type { Nemesis } from '../context.ts'

export const restart: Nemesis = {
  name: 'restart',
  weight: 0.25,
  ownServer: true,
  async inflict({ restart }, dice) {
    const how = dice.pick(['fast', 'immediate'] as const)!
    await restart!(how)
    return how
  },
}
