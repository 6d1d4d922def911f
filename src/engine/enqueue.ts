// Puts jobs in: one or a hundred thousand, all or none, in a transaction of their own or in the caller's.

import { RowlockError } from '../ground/errors.ts'
import type { AnyRequest } from '../ground/job.ts'
import { LIMITS } from '../ground/limits.ts'
import { toWire, type Wire } from '../ground/request.ts'
import type { Database } from './database.ts'
import type { Queryable } from './seam.ts'

/** What became of one job of an enqueue. Never null. */
export interface Enqueued {
  readonly id: string
  /** False when a live job of the queue had the dedupe key already: `id` is that job. */
  readonly created: boolean
}

/** Requests, in any form that can be gone through once. */
export type Requests = Iterable<AnyRequest> | AsyncIterable<AnyRequest>

/** What sends one batch; middleware wraps it. */
export type Send = (
  requests: readonly AnyRequest[],
  queryable: Queryable | undefined,
) => Promise<readonly Enqueued[]>

/**
 * Enqueue all requests, or none. Up to 1,000 jobs and 4 MB are one statement; more are several in one transaction,
 * or, in the caller's, behind one savepoint.
 *
 * Errors: of the request at fault, with its `index`; OUTCOME_UNKNOWN when the last answer was lost.
 */
export async function enqueueAll(
  database: Database,
  queryable: Queryable | undefined,
  requests: Requests,
  send: Send,
): Promise<Enqueued[]> {
  const batches = batchesOf(requests)
  const first = await batches.next()
  if (first.done) return []
  const second = await batches.next()
  if (second.done) return [...(await send(first.value, queryable))]

  const rest = async (through: Queryable): Promise<Enqueued[]> => {
    const results: Enqueued[] = []
    for (const batch of [first.value, second.value])
      results.push(...(await at(results.length, send(batch, through))))
    for await (const batch of batches) results.push(...(await at(results.length, send(batch, through))))
    return results
  }
  if (queryable === undefined) return database.transaction(rest, { write: 'enqueue' })
  await queryable.query('savepoint rowlock_enqueue')
  try {
    const results = await rest(queryable)
    await queryable.query('release savepoint rowlock_enqueue')
    return results
  } catch (error) {
    await queryable.query('rollback to savepoint rowlock_enqueue').catch(() => {})
    throw error
  }
}

/** Send one batch as one statement. */
export async function storeBatch(
  database: Database,
  queryable: Queryable | undefined,
  requests: readonly AnyRequest[],
): Promise<readonly Enqueued[]> {
  const wires: Wire[] = []
  let keyed = false
  let large = false
  for (let index = 0; index < requests.length; index++) {
    const request = requests[index]!
    try {
      const wire = toWire(request)
      const known = wire instanceof Promise ? await wire : wire
      wires.push(known)
      keyed ||= known.keyed
      large ||= known.inputBytes > LIMITS.inlineInputBytes.max
    } catch (error) {
      throw requests.length === 1 ? error : withIndex(error, index)
    }
  }
  let done = 0
  const results: Enqueued[] = []
  // Jobs beyond the bytes of one statement go in the next; such a batch runs inside a transaction.
  const statement = async (through: Queryable | undefined): Promise<void> => {
    const end = endOfStatement(wires, done)
    const text = `[${wires
      .slice(done, end)
      .map(({ job }) => job)
      .join(',')}]`
    results.push(...(await store(database, through, text, keyed, large)))
    done = end
  }
  if (endOfStatement(wires, 0) === wires.length) {
    await statement(queryable)
  } else if (queryable !== undefined) {
    while (done < wires.length) await statement(queryable)
  } else {
    await database.transaction(
      async (client) => {
        while (done < wires.length) await statement(client)
      },
      { write: 'enqueue' },
    )
  }
  return results
}

async function store(
  database: Database,
  queryable: Queryable | undefined,
  jobs: string,
  keyed: boolean,
  large: boolean,
): Promise<Enqueued[]> {
  const args = '$1::text::jsonb, $2::text::boolean, $3::text::boolean'
  const values = [jobs, String(keyed), String(large)]
  const reply =
    queryable === undefined
      ? await database.call<Reply>('store', args, values, { write: 'enqueue' })
      : await database.callOn<Reply>(queryable, 'store', args, values)
  const existing = new Set(reply.existing)
  return reply.ids.map((id, index) => ({ id, created: !existing.has(index) }))
}

interface Reply {
  readonly ids: readonly string[]
  readonly existing: readonly number[]
}

function endOfStatement(wires: readonly Wire[], start: number): number {
  let bytes = 0
  let end = start
  while (end < wires.length && (end === start || bytes + wires[end]!.bytes <= LIMITS.bytesPerCall.max)) {
    bytes += wires[end]!.bytes
    end++
  }
  return end
}

async function* batchesOf(requests: Requests): AsyncGenerator<readonly AnyRequest[], void> {
  if (
    requests === null ||
    typeof requests !== 'object' ||
    !(Symbol.iterator in requests || Symbol.asyncIterator in requests)
  ) {
    throw new RowlockError(
      'INVALID_OPTION',
      'enqueueMany takes an array or another iterable of job.with(…)',
      { path: 'jobs' },
    )
  }
  let batch: AnyRequest[] = []
  for await (const request of requests) {
    batch.push(request)
    if (batch.length < LIMITS.jobsPerCall.max) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** The index inside a batch becomes the index inside the call. */
async function at<T>(offset: number, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof RowlockError) || (offset === 0 && error.index !== undefined)) throw error
    throw withIndex(error, offset + (error.index ?? 0))
  }
}

function withIndex(error: unknown, index: number): unknown {
  if (!(error instanceof RowlockError)) return error
  const { path, issues, cause } = error
  const message = `Job ${index}: ${error.message.replace(/^Job \d+: /, '')}`
  return new RowlockError(error.code, message, {
    index,
    ...(path !== undefined && { path }),
    ...(issues !== undefined && { issues }),
    ...(cause !== undefined && { cause }),
  })
}
