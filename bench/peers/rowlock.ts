// Rowlock at its fastest, history kept.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration: 'A worker with concurrency 1,000 and prefetch 100; history is kept for 7 days, the default.',
  concurrency: 1000,
  prefetch: 100,
})
