// Rowlock at its fastest, without history.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration:
    'A worker with concurrency 500 and prefetch 100; the queue keeps no history (retentionDays 0).',
  concurrency: 500,
  prefetch: 100,
  retentionDays: 0,
})
