// graphile-worker beyond its documentation: a local queue so long that what a fetch costs is spread over 10,000 jobs.

import { graphilePeer } from './graphile-worker-pool.ts'

process.env.NO_LOG_SUCCESS = '1'

export const peer = graphilePeer({
  configuration:
    'graphile-worker 0.18.0 as above, but localQueue.size 10,000 and concurrency 200: of 500, 1,000, 2,000, 4,000, ' +
    '10,000 and 20,000 the fastest here. Its documentation shows 500. What a worker holds when it dies is locked for 4 ' +
    'hours.',
  options: { concurrency: 200, maxPoolSize: 10 },
  preset: { worker: { localQueue: { size: 10_000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
})
