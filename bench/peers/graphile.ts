// graphile-worker at its fastest: jobs fetched 500 at a time, completions batched.

import { graphilePeer } from './graphile-worker-pool.ts'

process.env.NO_LOG_SUCCESS = '1'

export const peer = graphilePeer({
  configuration:
    'graphile-worker 0.18.0: concurrency 100, maxPoolSize 10, localQueue.size 500, completeJobBatchDelay 0, ' +
    'failJobBatchDelay 0, NO_LOG_SUCCESS (its page on performance). It keeps no history.',
  options: { concurrency: 100, maxPoolSize: 10 },
  preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
})
