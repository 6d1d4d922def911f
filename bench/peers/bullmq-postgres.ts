// BullMQ on its PostgreSQL back end at its fastest.

import { bullMqPeer } from './bullmq-queue.ts'

export const peer = bullMqPeer({
  configuration:
    'BullMQ 6.7.0 with createPostgresBackend: one Worker with concurrency 100, a pool of 16, removeOnComplete.',
  on: 'postgres',
  concurrency: 100,
  removeOnComplete: true,
})
