// The jobs of a soak: each kind ends in one way, so that what is left at the end can be held against it.

import type { State } from '../../src/index.ts'
import { defineJob, fixed } from '../../src/index.ts'

/** What every job is given. */
export interface Task {
  /** 0 to 1: one throw of the dice for each job. */
  readonly luck: number
  /** Of large ones: makes the input what it is. */
  readonly text?: string
}

const soon = { retry: { maxAttempts: 5, backoff: fixed(50) } }
const once = { retry: { maxAttempts: 1, backoff: fixed(50) } }

/** By how their handlers behave. */
export const jobs = {
  quick: defineJob<Task>('quick', soon),
  /** Listens to its signal, and never takes the listener off again. */
  careless: defineJob<Task>('careless', soon),
  /** Fails once or twice, then ends well. */
  flaky: defineJob<Task>('flaky', soon),
  hopeless: defineJob<Task>('hopeless', soon),
  /** Snoozes once. */
  later: defineJob<Task>('later', { ...soon, queue: 'side' }),
  /** Runs into its timeout; looks at its signal. */
  late: defineJob<Task>('late', { ...once, timeout: 100 }),
  /** The same, and looks at nothing for a while. */
  deaf: defineJob<Task>('deaf', { ...once, timeout: 100 }),
  /** Is called off, before it runs or while it does. */
  unwanted: defineJob<Task>('unwanted', soon),
  /** In a transaction; some roll back once. */
  book: defineJob<Task>('book', { ...soon, queue: 'side', timeout: '10s' }),
  /** Its input and its result are large. */
  large: defineJob<Task>('large', soon),
}

/** A kind. */
export type Kind = keyof typeof jobs

/** How often each kind is enqueued. */
export const SHARES: readonly (readonly [Kind, number])[] = [
  ['quick', 40],
  ['careless', 10],
  ['flaky', 15],
  ['hopeless', 2],
  ['later', 8],
  ['late', 3],
  ['deaf', 0.3],
  ['unwanted', 5],
  ['book', 12],
  ['large', 5],
]

/** How the jobs of each kind may end. */
export const ENDS: Readonly<Record<Kind, readonly State[]>> = {
  quick: ['done'],
  careless: ['done'],
  flaky: ['done'],
  hopeless: ['failed'],
  later: ['done'],
  late: ['dead_letter'],
  // Where the process has no time to look before it settles, it was not deaf.
  deaf: ['dead_letter', 'done'],
  unwanted: ['cancelled'],
  book: ['done'],
  large: ['done'],
}

/** Those that wait for their signal would run for so long. Unit: ms. */
export const FOREVER_MS = 60_000
/** The queue that is paused now and then. */
export const SIDE = 'side'
