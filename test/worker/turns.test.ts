// Queues that share the slots of one worker: in turns by weight, or strictly one before the other. Stepped: each claim
// is one look of the fetcher, and jobs end when the test says so.

import { defineJob, handle, handleInTransaction } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Claim, ClaimedJob } from '../../src/engine/claim.ts'
import { Database } from '../../src/engine/database.ts'
import { Fetcher } from '../../src/worker/fetcher.ts'
import { Frontier } from '../../src/worker/frontier.ts'
import { Lease } from '../../src/worker/lease.ts'
import { Orphans } from '../../src/worker/orphans.ts'
import { Slots } from '../../src/worker/slots.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let database: Database
beforeAll(async () => {
  rig = await makeRig('turns')
  database = new Database({ connectionString: rig.db.url }).lane(2, 'turns')
})
afterEach(() => rig.rest())
afterAll(async () => {
  await database.closeLane()
  await rig.drop()
})

const job = defineJob<number>('job')
const enqueue = (queue: string, count: number) =>
  rig.rowlock.enqueueMany(Array.from({ length: count }, (_, n) => job.with(n, { queue })))
const waiting = () => rig.db.value<number>('select count(*)::integer from rowlock.waiting')

interface Wanted {
  readonly slots: number
  readonly queues: Readonly<Record<string, { readonly weight?: number; readonly concurrency?: number }>>
  readonly precedence?: readonly string[]
}

/** A worker that looks when it is told to, and whose jobs run until they are ended. */
async function stepped({ slots: shared, queues, precedence }: Wanted) {
  const id = Lease.newId()
  await rig.db.sql(`select rowlock.register($1, '1 h', '{}')`, [id])
  const lease = new Lease(3_600_000, () => {})
  lease.granted(id, performance.now())
  const slots = new Slots(
    Object.entries(queues).map(([queue, { concurrency = shared }]) => {
      return { queue, concurrency, prefetch: 0, hasOwnPrefetch: true }
    }),
    ['job'],
    {
      slots: shared,
      precedence,
      weights: new Map(Object.entries(queues).map(([queue, { weight = 1 }]) => [queue, weight])),
    },
  )
  const running: ClaimedJob[] = []
  const started: Record<string, number> = Object.fromEntries(Object.keys(queues).map((queue) => [queue, 0]))
  let last: Claim | undefined
  const fetcher = new Fetcher({
    database,
    lease,
    slots,
    frontier: new Frontier(),
    orphans: new Orphans({
      database,
      timeoutMs: 30_000,
      doubtMs: 0,
      everyMs: 3_600_000,
      isKnown: () => true,
      onFound: () => {},
    }),
    pollMs: 50,
    pollListeningMs: 50,
    timeoutMs: 30_000,
    isListening: () => false,
    isHeld: () => false,
    onClaim: (claimed) => {
      last = claimed
      slots.add(claimed.jobs)
      const { startable } = slots.takeStartable()
      running.push(...startable)
      for (const { queue } of startable) started[queue]!++
    },
    onError: (error) => {
      throw error
    },
  })
  return {
    started,
    running,
    slots,
    /** One look. Answers what it claimed, by queue. */
    async look(): Promise<Record<string, number>> {
      last = undefined
      await fetcher.runOnce()
      return { ...(last as Claim | undefined)?.found }
    },
    /** Until a look finds nothing more. */
    async fill(): Promise<void> {
      while (Object.keys(await this.look()).length > 0);
    },
    /** The oldest ones, or those of a queue, end. */
    end(count: number, queue?: string): void {
      for (let n = 0; n < count; n++) {
        const at = running.findIndex((one) => queue === undefined || one.queue === queue)
        slots.free(running.splice(at, 1)[0]!, false)
      }
    },
  }
}

describe('in turns by weight', () => {
  test('three to one is three starts to one, however many slots are free at a time', async () => {
    await enqueue('mail', 900)
    await enqueue('reports', 900)
    const worker = await stepped({ slots: 7, queues: { mail: { weight: 3 }, reports: {} } })
    for (let n = 0; n < 150; n++) {
      await worker.look()
      expect(worker.running).toHaveLength(7)
      worker.end(1 + (n % 7))
    }
    const { mail, reports } = worker.started as { mail: number; reports: number }
    expect(mail! + reports!).toBeGreaterThan(500)
    expect(Math.abs(mail! - 3 * reports!)).toBeLessThanOrEqual(3)
  })

  test('one, two and four share to within a start, slot by slot', async () => {
    for (const queue of ['a', 'b', 'c']) await enqueue(queue, 300)
    const worker = await stepped({ slots: 2, queues: { a: {}, b: { weight: 2 }, c: { weight: 4 } } })
    await worker.look()
    for (let n = 0; n < 348; n++) {
      worker.end(1)
      await worker.look()
    }
    expect(worker.started).toEqual({ a: 50, b: 100, c: 200 })
  })

  test('no slot is idle while any queue has work, and what one leaves is the others’', async () => {
    await enqueue('mail', 2)
    await enqueue('reports', 30)
    const worker = await stepped({ slots: 10, queues: { reports: {}, mail: { weight: 9 } } })
    await worker.fill()
    expect(worker.started).toEqual({ mail: 2, reports: 8 })
    // By now it is known that nothing of mail waits: one look fills all.
    for (const reports of [18, 28]) {
      worker.end(10)
      await worker.look()
      expect(worker.running).toHaveLength(10)
      expect(worker.started).toEqual({ mail: 2, reports })
    }
  })

  test('a queue without a turn now is looked into before the worker believes that nothing is there', async () => {
    const worker = await stepped({ slots: 1, queues: { mail: {}, reports: {} } })
    await enqueue('mail', 1)
    expect(await worker.look()).toEqual({ mail: 1 })
    worker.end(1)
    await enqueue('mail', 1)
    expect(await worker.look()).toEqual({ mail: 1 })
    worker.end(1)
    expect(await worker.look()).toEqual({})
    for (const queue of ['reports', 'mail', 'mail', 'reports', 'reports', 'mail']) {
      await enqueue(queue, 1)
      expect(await worker.look()).toEqual({ [queue]: 1 })
      worker.end(1)
    }
  })

  test('a queue that had no work saves no turns up, and one that used the slots of others owes none', async () => {
    await enqueue('mail', 200)
    const worker = await stepped({ slots: 1, queues: { mail: {}, reports: {} } })
    await worker.look()
    for (let n = 0; n < 49; n++) {
      worker.end(1)
      await worker.look()
    }
    expect(worker.started).toEqual({ mail: 50, reports: 0 })
    await enqueue('reports', 100)
    for (let n = 0; n < 20; n++) {
      worker.end(1)
      await worker.look()
    }
    expect(worker.started.reports).toBeGreaterThanOrEqual(9)
    expect(worker.started.reports).toBeLessThanOrEqual(11)
  })

  test('a queue that is full by its own concurrency leaves its turns, and saves none up', async () => {
    await enqueue('mail', 200)
    await enqueue('reports', 200)
    const worker = await stepped({ slots: 6, queues: { mail: { concurrency: 2 }, reports: {} } })
    await worker.fill()
    for (let n = 0; n < 40; n++) {
      worker.end(1, 'reports')
      await worker.look()
    }
    expect(worker.started).toEqual({ mail: 2, reports: 44 })
    worker.slots.resize({ mail: { concurrency: 6, limited: false } })
    for (let n = 0; n < 20; n++) {
      worker.end(1, 'reports')
      await worker.look()
      worker.end(1, 'mail')
      await worker.look()
    }
    expect(worker.started.mail).toBeGreaterThanOrEqual(20)
    expect(worker.started.mail).toBeLessThanOrEqual(24)
  })

  test('a paused queue is passed by, and its turns are the others’', async () => {
    await enqueue('mail', 20)
    await enqueue('reports', 20)
    await rig.rowlock.pause('mail')
    const worker = await stepped({ slots: 4, queues: { mail: { weight: 50 }, reports: {} } })
    await worker.fill()
    expect(worker.started).toEqual({ mail: 0, reports: 4 })
    await rig.rowlock.resume('mail')
    worker.end(4)
    await worker.fill()
    expect(worker.started.mail).toBeGreaterThanOrEqual(3)
  })

  test('a queue that is held by a limit leaves its turns to the others', async () => {
    await enqueue('mail', 20)
    await enqueue('reports', 60)
    await rig.rowlock.setQueue('mail', { maxRunning: 2 })
    const worker = await stepped({ slots: 8, queues: { mail: { weight: 50 }, reports: {} } })
    await worker.fill()
    expect(worker.started).toEqual({ mail: 2, reports: 6 })
    for (let n = 1; n <= 4; n++) {
      worker.end(6, 'reports')
      await worker.fill()
      expect(worker.started).toEqual({ mail: 2, reports: 6 + 6 * n })
    }
  })

  test('a job that must run alone gets its turn in a queue that is not the first', async () => {
    await enqueue('mail', 50)
    const [suspect] = await enqueue('reports', 1)
    await rig.db.sql('update rowlock.waiting set losses = 2 where id = $1', [suspect!.id])
    const worker = await stepped({ slots: 1, queues: { mail: { weight: 3 }, reports: {} } })
    for (let n = 0; n < 20 && worker.started.reports === 0; n++) {
      await worker.look()
      worker.end(worker.running.length)
    }
    expect(worker.started.reports).toBe(1)
  })
})

describe('by precedence', () => {
  test('nothing of a later queue is claimed while an earlier one has a due job', async () => {
    for (const queue of ['mail', 'imports', 'reports']) await enqueue(queue, 30)
    const worker = await stepped({
      slots: 4,
      queues: { reports: {}, imports: {}, mail: {} },
      precedence: ['mail', 'imports', 'reports'],
    })
    const order: string[] = []
    for (let n = 0; n < 23; n++) {
      const found = await worker.look()
      for (const queue of ['mail', 'imports', 'reports']) order.push(...Array(found[queue] ?? 0).fill(queue))
      if (n === 10) await enqueue('mail', 4)
      worker.end(worker.running.length)
    }
    expect(order.slice(0, 48).filter((queue) => queue === 'mail')).toHaveLength(34)
    expect(order.slice(44, 48)).toEqual(Array(4).fill('mail'))
    expect(order.indexOf('reports')).toBe(64)
  })

  test('one claim takes what the first has and fills up from the next', async () => {
    await enqueue('mail', 3)
    await enqueue('reports', 30)
    const worker = await stepped({
      slots: 10,
      queues: { reports: {}, mail: {} },
      precedence: ['mail', 'reports'],
    })
    expect(await worker.look()).toEqual({ mail: 3, reports: 7 })
    expect(worker.running).toHaveLength(10)
    expect(await waiting()).toBe(23)
  })

  test('a later queue with a concurrency leaves slots free for the first', async () => {
    await enqueue('reports', 30)
    const worker = await stepped({
      slots: 10,
      queues: { mail: {}, reports: { concurrency: 7 } },
      precedence: ['mail', 'reports'],
    })
    await worker.fill()
    expect(worker.started).toEqual({ mail: 0, reports: 7 })
    await enqueue('mail', 5)
    await worker.fill()
    expect(worker.started).toEqual({ mail: 3, reports: 7 })
  })
})

describe('a worker', () => {
  const lasting = () => {
    const ends: (() => void)[] = []
    const run = () => new Promise<void>((resolve) => ends.push(resolve))
    return { ends, handlers: [handle(job, run), handleInTransaction(defineJob('paid'), run)] }
  }

  test('runs as many as it has shared slots, in transactions too, and nothing is claimed ahead', async () => {
    const { ends, handlers } = lasting()
    await rig.rowlock.enqueueMany(
      Array.from({ length: 20 }, (_, n) =>
        defineJob(n % 2 ? 'job' : 'paid').with(n, { queue: n % 3 ? 'mail' : 'reports' }),
      ),
    )
    const worker = await rig.start({ handlers, slots: 4, queues: { mail: { weight: 3 }, reports: {} } })
    await until('four run', () => ends.length === 4)
    for (let n = 0; n < 16; n++) {
      expect(worker.status).toMatchObject({ running: 4, prefetched: 0 })
      ends[n]!()
      await until('the next one runs', () => ends.length === n + 5)
    }
    for (const end of ends) end()
    await rig.idle()
  })

  test('follows a concurrency of a queue up to its slots', async () => {
    const { ends, handlers } = lasting()
    await rig.rowlock.setQueue('reports', { concurrency: 1 })
    await enqueue('reports', 9)
    await rig.start({ handlers, slots: 3, heartbeat: 100, queues: { mail: {}, reports: {} } })
    await until('one runs', () => ends.length === 1)
    await rig.rowlock.setQueue('reports', { concurrency: 900 })
    await until('three run', () => ends.length === 3)
    expect(await rig.db.value('select slots from rowlock.workers()')).toBe(3)
    const slots = () => rig.db.value<number>(`select slots from rowlock.queues('reports')`)
    await until('a beat tells that it is more than one', async () => (await slots()) > 1)
    expect(await slots()).toBe(3)
    const rest = setInterval(() => ends.splice(0).forEach((end) => void end()), 5)
    await rig.idle()
    clearInterval(rest)
  })

  test('why says that others have the slots', async () => {
    const { ends, handlers } = lasting()
    await enqueue('mail', 4)
    await rig.start({ handlers, slots: 3, heartbeat: 100, lease: '1h', queues: { mail: {}, reports: {} } })
    await until('three run', () => ends.length === 3)
    const [sent] = await enqueue('reports', 1)
    const says = await until('it is told', async () => {
      const reasons = await rig.rowlock.why(sent!.id)
      return reasons.find(({ reason }) => reason === 'workers_full')?.says
    })
    expect(says).toMatch(/0 job\(s\) of queue reports are claimed for 0 slot\(s\); of 3 that queues share/)
    const rest = setInterval(() => ends.splice(0).forEach((end) => void end()), 5)
    await rig.idle()
    clearInterval(rest)
  })
})
