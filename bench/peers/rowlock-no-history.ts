// Rowlock at its fastest, without history.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration:
    'A worker with concurrency 1,000 and prefetch 100; the queue keeps no history (retentionDays 0).',
  concurrency: 1000,
  prefetch: 100,
  retentionDays: 0,
})
