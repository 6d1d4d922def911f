// Rowlock's verbs without handlers: a loop that claims 1,000 and finishes 1,000, as one would use pg-boss's fetch.

import { randomUUID } from 'node:crypto'
import { verbs } from '../kit/rowlock.ts'
import { handledMany, tellProgress } from './handled.ts'
import { rowlockPeer } from './rowlock-worker.ts'

const BATCH = 1000
const TIMEOUT_MS = 60_000
const base = rowlockPeer({
  configuration: 'No worker: a loop of claim (1,000) and finish (1,000) over one connection; history kept.',
})
let database: InstanceType<typeof verbs.Database> | undefined
let over = false
let looping: Promise<void> | undefined

async function loop(): Promise<void> {
  const workerId = randomUUID()
  await verbs.register(database!, workerId, TIMEOUT_MS, {}, TIMEOUT_MS)
  const wants = [{ queue: 'default', limit: BATCH, kinds: ['noop'] }]
  while (!over) {
    const { jobs } = await verbs.claim(database!, workerId, wants, null, TIMEOUT_MS)
    if (jobs.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      continue
    }
    const outcomes = jobs.map(({ id, claimId, attempt, queue }) => ({
      verb: 'complete' as const,
      id,
      claim_id: claimId,
      attempt,
      queue,
      ran_ms: 0,
    }))
    await verbs.finish(database!, outcomes, TIMEOUT_MS)
    handledMany(jobs.length)
  }
}

export const peer = {
  ...base,
  async open(place: { url: string }) {
    await base.open(place)
    database = new verbs.Database({ connectionString: place.url, maxConnections: 2 })
  },
  async work() {
    tellProgress()
    looping = loop()
  },
  async close() {
    over = true
    await looping
    await database?.close()
    await base.close()
  },
}
