// Puts jobs in: one or a hundred thousand, all or none, in a transaction of their own or in the caller's.

import { types } from 'node:util'
import { RowlockError } from '../ground/errors.ts'
import type { AnyRequest } from '../ground/job.ts'
import { LIMITS } from '../ground/limits.ts'
import { toWire, type Wire } from '../ground/request.ts'
import type { Database } from './database.ts'
import type { Queryable } from './seam.ts'

/** What became of one job of an enqueue. Never null. */
export interface Enqueued {
  readonly id: string
  /** False when a live job of the queue had the dedupe key already: `id` is that job. And when it was dropped. */
  readonly created: boolean
  /** `'queue_full'`: it was dropped, as its queue's `whenFull` says, and no job has this id. Else absent. */
  readonly reason?: 'queue_full'
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
 * Errors: of the request at fault, with its `index`; QUEUE_FULL; OUTCOME_UNKNOWN when the last answer was lost.
 */
export async function enqueueAll(
  database: Database,
  queryable: Queryable | undefined,
  requests: Requests,
  send: Send,
): Promise<Enqueued[]> {
  // Two calls whose keys meet in opposite order, each over several statements, can wait for each other. What was undone
  // can be sent again where the caller's requests can be gone through again and the transaction is ours.
  const isRepeatable = queryable === undefined && Array.isArray(requests)
  for (let tries = 1; ; tries++) {
    try {
      return await enqueueOnce(database, queryable, requests, send)
    } catch (error) {
      if (!isRepeatable || tries >= DEADLOCK_TRIES || (error as { code?: unknown }).code !== '40P01')
        throw error
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 50 * tries))
    }
  }
}

async function enqueueOnce(
  database: Database,
  queryable: Queryable | undefined,
  requests: Requests,
  send: Send,
): Promise<Enqueued[]> {
  const batches = batchesOf(requests)
  try {
    const first = await batches.next()
    if (first.done) return []
    const second = await batches.next()
    if (second.done) return [...(await send(first.value, queryable))]
    return await enqueueBatches(database, queryable, [first.value, second.value], batches, send)
  } catch (error) {
    throw original(error)
  } finally {
    // A source that is not gone through to its end is told so, and can close what it reads from.
    await batches.return().catch(() => {})
  }
}

async function enqueueBatches(
  database: Database,
  queryable: Queryable | undefined,
  read: readonly (readonly AnyRequest[])[],
  batches: AsyncGenerator<readonly AnyRequest[], void>,
  send: Send,
): Promise<Enqueued[]> {
  const all = async (through: Queryable): Promise<Enqueued[]> => {
    const results: Enqueued[] = []
    for (const batch of read) results.push(...(await at(results.length, send(batch, through))))
    for await (const batch of batches) results.push(...(await at(results.length, send(batch, through))))
    return results
  }
  if (queryable === undefined)
    return database.transaction(all, { write: 'enqueue', idleMs: LIMITS.sourceIdleMs.max })
  const savepoint = `rowlock_enqueue_${++savepoints}`
  await queryable.query(`savepoint ${savepoint}`).catch((error) => {
    if ((error as { code?: unknown }).code !== '25P01') throw error
    throw new RowlockError('INVALID_OPTION', 'in() takes a client inside a transaction: begin one first', {
      path: 'tx',
      cause: error,
    })
  })
  try {
    const results = await all(queryable)
    await queryable.query(`release savepoint ${savepoint}`)
    return results
  } catch (error) {
    await queryable.query(`rollback to savepoint ${savepoint}`).catch(() => {})
    throw error
  }
}

/** How often a call that met another in opposite order is sent. */
const DEADLOCK_TRIES = 10
/** Two calls in one transaction have savepoints of their own. */
let savepoints = 0
/** A number with an exponent: jsonb writes it out, so its text may be large though this one is not. */
const EXPONENT = /\de[+-]\d/

/** What the caller's iterable or middleware threw: kept apart, so that its lost socket is not taken for ours. */
export class CallerFailed extends Error {
  override readonly name = 'CallerFailed'
}

/** The error as the caller's code threw it. */
export const original = (error: unknown): unknown => (error instanceof CallerFailed ? error.cause : error)

/** Send one batch as one statement. */
export async function storeBatch(
  database: Database,
  queryable: Queryable | undefined,
  requests: readonly AnyRequest[],
): Promise<readonly Enqueued[]> {
  const wires: Wire[] = []
  let keyed = false
  let large = false
  let alike = true
  for (let index = 0; index < requests.length; index++) {
    const request = requests[index]!
    try {
      const wire = toWire(request)
      const known = wire instanceof Promise ? await wire : wire
      wires.push(known)
      keyed ||= known.keyed
      large ||= known.inputBytes > LIMITS.inlineInputBytes.max || EXPONENT.test(known.input)
      alike &&= known.settings === wires[0]!.settings
    } catch (error) {
      throw withIndex(error, index)
    }
  }
  let done = 0
  const results: Enqueued[] = []
  // Jobs beyond the bytes of one statement go in the next; such a batch runs inside a transaction.
  const statement = async (through: Queryable | undefined): Promise<void> => {
    const end = endOfStatement(wires, done)
    const part = end === wires.length && done === 0 ? wires : wires.slice(done, end)
    const verb = alike && !keyed && !large ? alikeOf(part) : eachOf(part, keyed, large)
    results.push(...(await store(database, through, verb)))
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

/** One call of SQL. */
type Call = readonly [name: string, args: string, values: string[]]

/** Jobs that differ in nothing but their inputs. */
function alikeOf(wires: readonly Wire[]): Call {
  let inputs = ''
  for (const { input } of wires) inputs += inputs === '' ? input : `,${input}`
  return ['store_alike', '$1::text::jsonb, $2::text::jsonb', [wires[0]!.settings, `[${inputs}]`]]
}

function eachOf(wires: readonly Wire[], keyed: boolean, large: boolean): Call {
  const jobs = `[${wires.map(({ job }) => job).join(',')}]`
  return [
    'store',
    '$1::text::jsonb, $2::text::boolean, $3::text::boolean',
    [jobs, String(keyed), String(large)],
  ]
}

async function store(
  database: Database,
  queryable: Queryable | undefined,
  [name, args, values]: Call,
): Promise<Enqueued[]> {
  const reply =
    queryable === undefined
      ? await database.call<Reply | Consecutive>(name, args, values, { write: 'enqueue' })
      : await database.callOn<Reply | Consecutive>(queryable, name, args, values)
  if ('first' in reply) return consecutive(reply)
  const existing = reply.existing.length === 0 ? undefined : new Set(reply.existing)
  const dropped = reply.dropped === undefined ? undefined : new Set(reply.dropped)
  return reply.ids.map((id, index) =>
    dropped?.has(index)
      ? { id, created: false, reason: 'queue_full' }
      : { id, created: existing === undefined || !existing.has(index) },
  )
}

interface Reply {
  readonly ids: readonly string[]
  readonly existing: readonly number[]
  readonly dropped?: readonly number[]
}

/** Ids one after the other. */
interface Consecutive {
  readonly first: string
  readonly count: number
}

function consecutive({ first, count }: Consecutive): Enqueued[] {
  const exact = Number(first) + count <= Number.MAX_SAFE_INTEGER ? Number(first) : BigInt(first)
  return Array.from({ length: count }, (_, n) => ({
    id: String(typeof exact === 'bigint' ? exact + BigInt(n) : exact + n),
    created: true,
  }))
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
  if (isPlainArray(requests)) {
    const { max } = LIMITS.jobsPerCall
    for (let start = 0; start < requests.length; start += max) yield requests.slice(start, start + max)
    return
  }
  let batch: AnyRequest[] = []
  for await (const request of readable(requests)) {
    batch.push(request)
    if (batch.length < LIMITS.jobsPerCall.max) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** An array that is gone through as arrays are: it can be cut, and its elements need not be waited for one by one. */
const isPlainArray = (requests: Requests): requests is AnyRequest[] =>
  Array.isArray(requests) &&
  Object.getPrototypeOf(requests) === Array.prototype &&
  requests[Symbol.iterator] === Array.prototype[Symbol.iterator] &&
  !(Symbol.asyncIterator in requests) &&
  !types.isProxy(requests)

async function* readable(requests: Requests): AsyncGenerator<AnyRequest, void> {
  try {
    yield* requests
  } catch (error) {
    throw new CallerFailed('the iterable of jobs threw', { cause: error })
  }
}

/** The index inside a batch becomes the index inside the call. What is no fault of one job has none. */
async function at<T>(offset: number, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof RowlockError) || error.index === undefined || offset === 0) throw error
    throw withIndex(error, offset + error.index)
  }
}

const PREFIX = /^Job \d+: /

function withIndex(error: unknown, index: number): unknown {
  if (!(error instanceof RowlockError)) return error
  return copy(error, `Job ${index}: ${error.message.replace(PREFIX, '')}`, { index })
}

/** The error of a job that was enqueued alone. */
export function withoutIndex(error: unknown): unknown {
  if (!(error instanceof RowlockError) || error.index === undefined) return error
  return copy(error, error.message.replace(PREFIX, ''), {})
}

function copy(
  { code, path, issues, cause }: RowlockError,
  message: string,
  detail: { index?: number },
): RowlockError {
  return new RowlockError(code, message, {
    ...detail,
    ...(path !== undefined && { path }),
    ...(issues !== undefined && { issues }),
    ...(cause !== undefined && { cause }),
  })
}
