// BullMQ in a configuration, on Redis or on its PostgreSQL back end.

import { createPostgresBackend, Queue, Worker } from 'bullmq'
import { handled, takeStarts, tellProgress } from './handled.ts'
import { batchesOf, eachOf, nowNs, type Peer, type Place } from './shape.ts'

/** How one contender differs from another. */
export interface BullMqConfiguration {
  readonly configuration: string
  readonly on: 'redis' | 'postgres'
  readonly concurrency?: number
  /** Finished jobs are removed. By default all are kept. */
  readonly removeOnComplete?: boolean
}

const NAME = 'noop'

/** Make a contender of a configuration. */
export function bullMqPeer(own: BullMqConfiguration): Peer & { starts(): [number, number][] } {
  const isPostgres = own.on === 'postgres'
  const backend = (isPostgres ? [createPostgresBackend] : []) as never[]
  let queue: Queue
  let worker: Worker | undefined
  let place: Place
  const connection = (blocking: boolean): never =>
    (isPostgres
      ? { connectionString: place.url, max: 16, ...(!blocking && { migrate: true }) }
      : {
          host: new URL(place.url).hostname,
          port: Number(new URL(place.url).port),
          ...(blocking && { maxRetriesPerRequest: null }),
        }) as never
  const kept = own.removeOnComplete === true ? { removeOnComplete: true } : {}
  return {
    configuration: own.configuration,
    async prepare(at) {
      place = at
      queue = new Queue(NAME, { connection: connection(false) }, ...backend)
      await queue.waitUntilReady()
      await queue.obliterate({ force: true })
      await queue.close()
    },
    async open(at) {
      place = at
      queue = new Queue(NAME, { connection: connection(false), defaultJobOptions: kept }, ...backend)
      queue.on('error', console.error)
      await queue.waitUntilReady()
    },
    async enqueue(amount) {
      for (const ns of batchesOf(amount)) await queue.addBulk(ns.map((n) => ({ name: NAME, data: { n } })))
    },
    async enqueueOnes(ones) {
      await eachOf(ones, (n) => queue.add(NAME, { n }))
    },
    async commit({ ns, holdMs }) {
      if (holdMs > 0) throw new Error('no transactions of ours')
      const at = nowNs()
      if (ns.length === 1) await queue.add(NAME, { n: ns[0] })
      else await queue.addBulk(ns.map((n) => ({ name: NAME, data: { n } })))
      return at
    },
    async work() {
      tellProgress()
      const options = {
        connection: connection(true),
        ...(own.concurrency !== undefined && { concurrency: own.concurrency }),
      }
      worker = new Worker(NAME, async ({ data }) => handled(data), options, ...backend)
      worker.on('error', console.error)
      await worker.waitUntilReady()
    },
    starts: takeStarts,
    async left() {
      const counts = await queue.getJobCounts('waiting', 'active', 'prioritized', 'delayed')
      return Object.values(counts).reduce((sum, n) => sum + n, 0)
    },
    async close() {
      await worker?.close()
      await queue.close()
    },
  }
}
