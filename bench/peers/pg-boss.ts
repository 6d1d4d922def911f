// pg-boss at its fastest: no worker, a loop of fetch and complete.

import { fetchAndComplete, pgBossPeer } from './pg-boss-queue.ts'

export const peer = pgBossPeer({
  configuration:
    'pg-boss 12.38.0 without its worker: a loop of fetch({ batchSize: 500 }) and complete of all 500 ids. Finished ' +
    'jobs stay in its table, as they do by default.',
  work: (boss, queue) => fetchAndComplete(boss, queue, 500),
})
