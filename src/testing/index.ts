// `rowlock/testing`: for the tests of those who use Rowlock.

export type { TestClock } from './clock.ts'
export { testClock } from './clock.ts'
export type { Drained, DrainOptions } from './drain.ts'
export { drain } from './drain.ts'
export type { RunJobOptions, RunJobResult } from './run-job.ts'
export { runJob } from './run-job.ts'
