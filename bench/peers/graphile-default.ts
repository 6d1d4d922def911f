// graphile-worker as it comes.

import { graphilePeer } from './graphile-worker-pool.ts'

export const peer = graphilePeer({
  configuration: 'graphile-worker 0.18.0 as it comes: concurrency 1, one fetch and one completion a job.',
  options: {},
})
