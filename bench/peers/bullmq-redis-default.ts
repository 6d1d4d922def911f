// BullMQ on Redis as it comes.

import { bullMqPeer } from './bullmq-queue.ts'

export const peer = bullMqPeer({
  configuration: 'BullMQ 6.7.0 as it comes: concurrency 1, finished jobs are kept. Redis without any file.',
  on: 'redis',
})
