// BullMQ on its PostgreSQL back end as it comes.

import { bullMqPeer } from './bullmq-queue.ts'

export const peer = bullMqPeer({
  configuration:
    'BullMQ 6.7.0 with createPostgresBackend as it comes: concurrency 1, finished jobs are kept.',
  on: 'postgres',
})
