// BullMQ on Redis at its fastest, with the durability that the others have.

import { bullMqPeer } from './bullmq-queue.ts'

export const peer = bullMqPeer({
  configuration:
    'BullMQ 6.7.0, ioredis 6.0.0: one Worker with concurrency 100, removeOnComplete. Redis with appendonly yes, ' +
    'appendfsync always.',
  on: 'redis',
  concurrency: 100,
  removeOnComplete: true,
})
