// BullMQ on Redis at its fastest.

import { bullMqPeer } from './bullmq-queue.ts'

export const peer = bullMqPeer({
  configuration:
    'BullMQ 6.7.0, ioredis 6.0.0: one Worker with concurrency 100, removeOnComplete. Redis without any file: what it ' +
    'was told is lost with it.',
  on: 'redis',
  concurrency: 100,
  removeOnComplete: true,
})
