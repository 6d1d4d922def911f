// What every contender can do, in a child process of its own. Each is one file that exports a `peer` of this shape;
// `roster.ts` says where it runs, `contest.ts` runs it.

import pg from 'pg'

/** Where a contender keeps its jobs: the address of a database of its own, or of a Redis. */
export interface Place {
  readonly url: string
}

/** Jobs are no-ops whose input is `{ n }`, numbered from 0. */
export interface Amount {
  readonly jobs: number
  /** Jobs of one call. */
  readonly batch: number
}

/** One commit of a producer, for latencies. */
export interface Commit {
  /** The numbers of its jobs. */
  readonly ns: readonly number[]
  /** How long the transaction stays open after the enqueue. Unit: ms. */
  readonly holdMs: number
}

/** A contender. */
export interface Peer {
  /** Versions and every setting that is not a default: stands in RESULTS.md word by word. */
  readonly configuration: string
  /** Make its tables. In a process of its own, before anything is measured. */
  prepare(place: Place): Promise<void>
  /** Connect. */
  open(place: Place): Promise<void>
  enqueue(amount: Amount): Promise<void>
  /** One job a call and a transaction, from so many clients at once. */
  enqueueOnes(ones: { readonly jobs: number; readonly clients: number }): Promise<void>
  /**
   * Enqueue and commit. Answers when the commit was sent, on the machine's monotonic clock, in ns: where the peer can't
   * enqueue in a transaction of ours, when its call was made.
   */
  commit(commit: Commit): Promise<number>
  /** Begin to take jobs; answers at once. Handlers call `handled`. */
  work(): Promise<void>
  /** Jobs that are not finished. May answer 1 for many. */
  left(): Promise<number>
  /** Stop what works, and disconnect. */
  close(): Promise<void>
}

/** The machine's monotonic clock, the same in every process. Unit: ns. */
export const nowNs = (): number => Number(process.hrtime.bigint())

/** Numbers of `amount`'s jobs, batch by batch. */
export function* batchesOf({ jobs, batch }: Amount): Generator<number[]> {
  for (let from = 0; from < jobs; from += batch) {
    yield Array.from({ length: Math.min(batch, jobs - from) }, (_, i) => from + i)
  }
}

/** Do something for each number below `jobs`, so many at once. */
export async function eachOf(
  { jobs, clients }: { readonly jobs: number; readonly clients: number },
  act: (n: number, client: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const one = async (client: number): Promise<void> => {
    while (next < jobs) await act(next++, client)
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => one(client)))
}

/** A transaction of ours around an enqueue, for {@link Peer.commit}. */
export async function commitAround(
  client: pg.Client,
  { ns, holdMs }: Commit,
  enqueue: (ns: readonly number[]) => Promise<unknown>,
): Promise<number> {
  await client.query('begin')
  await enqueue(ns)
  if (holdMs > 0) await new Promise((resolve) => setTimeout(resolve, holdMs))
  const at = nowNs()
  await client.query('commit')
  return at
}

/** A connected client. */
export async function connected(place: Place): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: place.url })
  await client.connect()
  return client
}
