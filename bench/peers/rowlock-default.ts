// Rowlock as it comes.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration: 'A worker as it comes: concurrency 10, prefetch 10, history for 7 days.',
})
