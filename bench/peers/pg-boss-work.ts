// pg-boss's own worker at its fastest: full batches fetched without a pause, woken by NOTIFY.

import { handled } from './handled.ts'
import { pgBossPeer } from './pg-boss-queue.ts'

export const peer = pgBossPeer({
  configuration:
    'pg-boss 12.38.0, work() with batchSize 500, burstWhenBatchFull, localConcurrency 2 and pollingIntervalSeconds ' +
    '0.5; useListenNotify, and notify on the queue.',
  notify: true,
  async work(boss, queue) {
    const options = {
      batchSize: 500,
      burstWhenBatchFull: true,
      localConcurrency: 2,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    }
    await boss.work<{ n: number }>(queue, options, async (jobs) => {
      for (const { data } of jobs) handled(data)
    })
    return () => boss.offWork(queue, { wait: true })
  },
})
