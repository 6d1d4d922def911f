// The jobs that the child program handles, shared with the tests that enqueue them.

import { defineJob } from '../../src/ground/job.ts'

/** The number is how long each takes, in ms. */
export const jobs = {
  work: defineJob<number>('work'),
  /** Lasts until its process is told to go on. */
  gated: defineJob<number>('gated'),
  poison: defineJob<number>('poison'),
  block: defineJob<number>('block'),
  deaf: defineJob<number>('deaf'),
  hang: defineJob<number>('hang', { timeout: 50 }),
  write: defineJob<number>('write'),
}
