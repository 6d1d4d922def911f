// What a fault is given to work with, and the shape that all of them have.

import type { Rowlock } from '../src/index.ts'
import type { Crew } from './crew.ts'
import type { Operation, Pause } from './history.ts'
import type { PostgresProxy } from './proxy.ts'
import type { Dice } from './random.ts'

/** The stage on which faults happen. */
export interface Context {
  readonly leaseMs: number
  readonly crew: Crew
  /** The way of the workers, and that of the producers and operators. */
  readonly proxies: { readonly workers: PostgresProxy; readonly producers: PostgresProxy }
  /** Past every fault; tried again while the server is away. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  /** A session of its own past every fault, for locks and snapshots. Answers when `body` has, and ends it. */
  session<T>(body: (query: (text: string) => Promise<unknown>) => Promise<T>): Promise<T>
  /** Restart the server; absent where it is not ours. */
  readonly restart?: (how: 'fast' | 'immediate') => Promise<void>
  /** An operator's client. */
  readonly rowlock: Rowlock
  /** Ids of jobs that were acknowledged lately. */
  readonly recent: readonly string[]
  readonly operations: Operation[]
  readonly pauses: Pause[]
  /** Sleeps so long, or until everything is to be healed. */
  pause(ms: number): Promise<void>
}

/** One kind of fault. */
export interface Nemesis {
  readonly name: string
  /** How often it is picked, beside the others: default 1. */
  readonly weight?: number
  /** Needs the server to be ours. */
  readonly ownServer?: true
  /** Do it, let go of it, and say what was done. What chance decides comes from the dice, to be replayed. */
  inflict(context: Context, dice: Dice): Promise<string>
  /** Take back whatever is still broken by it. */
  heal?(context: Context): Promise<void>
}
