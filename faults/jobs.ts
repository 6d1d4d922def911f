// The jobs of the chaos loop: shared by its producers and its workers.

import { defineJob, exponential, fixed } from '../src/index.ts'

/** What every job is given: a name that its producer chose, and what chance says of its handler. */
export interface Task {
  readonly ref: string
  /** 0 to 1: one throw of the dice for each job, so that a replay makes the same jobs. */
  readonly luck: number
}

const soon = { retry: { maxAttempts: 10, backoff: exponential({ min: 50, max: 1_000 }) } }
const patient = { ...soon, retry: { ...soon.retry, maxAttempts: 30 } }

/** By how their handlers behave. */
export const jobs = {
  quick: defineJob<Task>('quick', soon),
  slow: defineJob<Task>('slow', { ...soon, timeout: '5s' }),
  /** Fails often; a few of them use up their failures. */
  flaky: defineJob<Task>('flaky', {
    retry: { maxAttempts: 3, backoff: exponential({ min: 20, max: 1_000 }) },
  }),
  hopeless: defineJob<Task>('hopeless', soon),
  /** In a transaction. */
  book: defineJob<Task>('book', { ...patient, queue: 'narrow', timeout: '5s' }),
  later: defineJob<Task>('later', { ...soon, queue: 'narrow' }),
  /** Runs into its timeout; looks at its signal. */
  late: defineJob<Task>('late', { timeout: 200, retry: { maxAttempts: 2, backoff: fixed(100) } }),
  /** The same, and looks at nothing. */
  deaf: defineJob<Task>('deaf', { timeout: 300, retry: { maxAttempts: 3, backoff: fixed(100) } }),
}

/** How many handlers of a queue run at once in one process. */
export const CONCURRENCY = { default: 4, narrow: 2 } as const
/** Kinds whose handlers ignore their signal. */
export const DEAF = ['deaf']
/** Kinds whose handlers run in a transaction. */
export const TRANSACTIONAL = ['book']
