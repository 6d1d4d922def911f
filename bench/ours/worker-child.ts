// A child process with a client and a worker as users have them: handlers that do nothing, and say when they started.

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { rowlock as product } from '../kit/rowlock.ts'

/** What the worker serves, and how. */
export interface WorkerChildOptions {
  readonly url: string
  readonly queues: Readonly<Record<string, { concurrency?: number; prefetch?: number }>>
  /** Durations of WorkerOptions, as they are passed on. */
  readonly worker?: Readonly<Record<string, string | number | boolean>>
  /** Whether handlers read what they were given (`length`), or only end. */
  readonly reads?: boolean
}

/** What is enqueued, call by call. */
export interface Batches {
  readonly url: string
  readonly calls: number
  readonly jobsPerCall: number
  readonly queue?: string
  /** Bytes of text in each input. Default: a small object. */
  readonly inputBytes?: number
  /** Pause between two calls. Unit: ms, default 0. */
  readonly pauseMs?: number
}

/** What handlers saw since the last time they were asked. */
export interface Seen {
  readonly jobs: number
  /** From the input's `at` to the start of the handler, on this machine's clock. Unit: ms. */
  readonly latenciesMs: readonly number[]
  readonly peakRssBytes: number
}

type Client = ReturnType<typeof product.createRowlock>

const job = product.defineJob<{ at: number; text?: string }>('k')
const clients = new Map<string, Client>()
let worker: ReturnType<Client['worker']> | undefined
let seen = { jobs: 0, latenciesMs: [] as number[] }
let peakRssBytes = 0
let read = 0

function clientOf(url: string): Client {
  const known = clients.get(url)
  if (known !== undefined) return known
  const made = product.createRowlock({ connectionString: url })
  clients.set(url, made)
  return made
}

/** Wall clock in fractions of a millisecond: comparable between processes of one machine. */
const now = (): number => performance.timeOrigin + performance.now()

/** Start a worker; answers when it claims. */
export async function start({
  url,
  queues,
  worker: durations,
  reads = false,
}: WorkerChildOptions): Promise<void> {
  const handler = product.handle(job, ({ input }) => {
    seen.jobs++
    seen.latenciesMs.push(now() - input.at)
    if (reads) read += input.text?.length ?? 0
    if (seen.jobs % 16 === 0) peakRssBytes = Math.max(peakRssBytes, process.memoryUsage.rss())
  })
  worker = clientOf(url).worker({ handlers: [handler], queues, ...durations })
  await worker.start()
}

/** Stop the worker: what runs is finished, and all outcomes are written. */
export async function stop(): Promise<void> {
  await worker?.stop()
  worker = undefined
}

/** What handlers saw since the last time. */
export function look(): Seen {
  peakRssBytes = Math.max(peakRssBytes, process.memoryUsage.rss())
  const answer = { ...seen, peakRssBytes }
  seen = { jobs: 0, latenciesMs: [] }
  peakRssBytes = 0
  return answer
}

/** Wait until handlers have seen so many jobs since the last look. */
export async function untilSeen(jobs: number): Promise<void> {
  const deadline = performance.now() + 600_000
  while (seen.jobs < jobs) {
    if (performance.now() > deadline)
      throw new Error(`${seen.jobs} of ${jobs} jobs were handled in ten minutes`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** Enqueue; answers how many bytes of input that were, as JSON. */
export async function enqueue(batches: Batches): Promise<number> {
  const { url, calls, jobsPerCall, queue = 'default', inputBytes, pauseMs = 0 } = batches
  const client = clientOf(url)
  let bytes = 0
  for (let call = 0; call < calls; call++) {
    const inputs = Array.from({ length: jobsPerCall }, () => {
      const input = { at: now(), ...(inputBytes !== undefined && { text: noise(inputBytes) }) }
      bytes += JSON.stringify(input).length
      return input
    })
    if (inputs.length === 1) await client.enqueue(job, inputs[0]!, { queue })
    else await client.enqueueMany(inputs.map((input) => job.with(input, { queue })))
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return bytes
}

/** Text that does not compress, and differs each time. */
function noise(bytes: number): string {
  return randomBytes(Math.ceil((bytes * 3) / 4))
    .toString('base64')
    .slice(0, bytes)
}

/** So that reading is not optimised away. */
export function charactersRead(): number {
  return read
}

/** How a producer keeps a pace. */
export interface Feed {
  readonly url: string
  readonly jobsPerCall: number
  readonly seconds: number
  readonly perSecond?: number
  readonly atMostWaiting?: number
}

/** Enqueue for so many seconds at a pace, or as fast as it goes while few jobs wait; answers how many. */
export async function feed({ url, jobsPerCall, seconds, perSecond, atMostWaiting }: Feed): Promise<number> {
  const eye = new pg.Client({ connectionString: url })
  await eye.connect()
  const began = performance.now()
  let enqueued = 0
  while (performance.now() - began < seconds * 1000) {
    if (perSecond !== undefined) {
      const aheadMs = (enqueued / perSecond) * 1000 - (performance.now() - began)
      if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs))
    } else if ((enqueued / jobsPerCall) % 10 === 0) {
      while ((await waiting(eye)) > (atMostWaiting ?? 0))
        await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await enqueue({ url, calls: 1, jobsPerCall })
    enqueued += jobsPerCall
  }
  await eye.end()
  return enqueued
}

async function waiting(eye: pg.Client): Promise<number> {
  const { rows } = await eye.query('select count(*)::integer as n from rowlock.waiting')
  return rows[0].n
}
