// Rowlock at its fastest, history kept.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration: 'A worker with concurrency 500 and prefetch 100; history is kept for 7 days, the default.',
  concurrency: 500,
  prefetch: 100,
})
