// pg-boss's own worker as it comes.

import { handled } from './handled.ts'
import { pgBossPeer } from './pg-boss-queue.ts'

export const peer = pgBossPeer({
  configuration: 'pg-boss 12.38.0, work() as it comes: one job a fetch, a fetch every 2 s.',
  async work(boss, queue) {
    await boss.work<{ n: number }>(queue, async (jobs) => {
      for (const { data } of jobs) handled(data)
    })
    return () => boss.offWork(queue, { wait: true })
  },
})
