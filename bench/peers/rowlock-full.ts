// Rowlock at its fastest, with jobs as users write them and not as benches do.

import { rowlockPeer } from './rowlock-worker.ts'

export const peer = rowlockPeer({
  configuration:
    'As `rowlock`, but each job has a schema that is asked at the enqueue and before it runs, a timeout, a number of ' +
    'attempts, one of 100 tenants, and a handler that returns a result.',
  concurrency: 1000,
  prefetch: 100,
  full: true,
})
