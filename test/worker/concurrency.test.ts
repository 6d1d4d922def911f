// The concurrency that a queue is set to is followed by every worker that serves it, while it runs.

import { defineJob, handle, handleInTransaction } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Slots } from '../../src/worker/slots.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('concurrency')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<number>('job')
const paid = defineJob<number>('paid')

/** Handlers that stay until they are let go. */
function lasting() {
  const ends: (() => void)[] = []
  const aborted: unknown[] = []
  const run = ({ signal }: { signal: AbortSignal }) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => aborted.push(signal.reason))
      ends.push(resolve)
    })
  return {
    ends,
    aborted,
    handlers: [handle(job, run), handleInTransaction(paid, run)],
    letGo() {
      for (const end of ends) end()
    },
  }
}
const jobs = (count: number, definition = job) => Array.from({ length: count }, (_, n) => definition.with(n))
const concurrency = (value: number | null) => rig.rowlock.setQueue('default', { concurrency: value })

describe('a worker', () => {
  test('that does not listen takes it up with its next beat: more run at once', async () => {
    const { ends, handlers, letGo } = lasting()
    await rig.start({ handlers, heartbeat: 100, queues: { default: { concurrency: 1, prefetch: 0 } } })
    await rig.rowlock.enqueueMany(jobs(5))
    await until('one runs', () => ends.length === 1)
    await concurrency(4)
    await until('four run', () => ends.length === 4)
    expect(await rig.db.value('select count(*)::integer from rowlock.running')).toBe(4)
    letGo()
    await until('the last one runs', () => ends.length === 5)
    letGo()
  })

  test('that listens takes it up at once, however rarely it beats', async () => {
    const { ends, handlers, letGo } = lasting()
    const worker = await rig.start({
      handlers,
      listen: true,
      lease: '1h',
      heartbeat: '20m',
      queues: { default: { concurrency: 1, prefetch: 0 } },
    })
    await until('it hears', () => worker.status.listening)
    await rig.rowlock.enqueueMany(jobs(3))
    await until('one runs', () => ends.length === 1)
    await concurrency(3)
    await until('three run', () => ends.length === 3)
    letGo()
  })

  test('begins with it', async () => {
    const { ends, handlers, letGo } = lasting()
    await concurrency(2)
    await rig.rowlock.enqueueMany(jobs(9))
    await rig.start({ handlers, lease: '1h', heartbeat: '20m', queues: { default: { concurrency: 1 } } })
    await until('two run', () => ends.length === 2)
    await until(
      'two more are prefetched',
      async () => (await rig.db.value('select count(*)::integer from rowlock.running')) === 4,
    )
    letGo()
    await until('it goes on', () => ends.length === 4)
    letGo()
    await until('and on', () => ends.length >= 6)
    letGo()
  })

  test('lets what runs end where there are fewer slots, and hands back what it had claimed ahead', async () => {
    const { ends, aborted, handlers, letGo } = lasting()
    const worker = await rig.start({ handlers, heartbeat: 100, queues: { default: { concurrency: 4 } } })
    const all = await rig.rowlock.enqueueMany(jobs(12))
    await until('all slots are taken', () => ends.length === 4 && worker.status.prefetched === 4)
    await concurrency(1)
    await until('it keeps one for its one slot', () => worker.status.prefetched === 1)
    await until(
      'the others can be had by whoever is free',
      async () => (await rig.db.value('select count(*)::integer from rowlock.waiting')) === 7,
    )
    expect(worker.status.running).toBe(4)
    expect(aborted).toEqual([])
    ends[0]!()
    await rig.becomes(all[0]!.id, 'done')
    expect(worker.status.running).toBe(3)
    letGo()
    await until('one at a time', () => ends.length === 5)
    expect(worker.status.running).toBe(1)
    const rest = setInterval(letGo, 5)
    await rig.idle()
    clearInterval(rest)
    expect(aborted).toEqual([])
  })

  test('goes back to its own when the setting is taken away', async () => {
    const { ends, handlers, letGo } = lasting()
    await concurrency(1)
    await rig.start({ handlers, heartbeat: 100, queues: { default: { concurrency: 3, prefetch: 0 } } })
    await rig.rowlock.enqueueMany(jobs(5))
    await until('one runs', () => ends.length === 1)
    await concurrency(null)
    await until('three run', () => ends.length === 3)
    const rest = setInterval(letGo, 5)
    await rig.idle()
    clearInterval(rest)
  })

  test('has a connection for each of its handlers in transactions, when there are more', async () => {
    const { ends, handlers, letGo } = lasting()
    await rig.start({ handlers, heartbeat: 100, queues: { default: { concurrency: 1, prefetch: 0 } } })
    await rig.rowlock.enqueueMany(jobs(4, paid))
    await until('one runs', () => ends.length === 1)
    await concurrency(4)
    await until('four run, each in its own transaction', () => ends.length === 4)
    letGo()
    await rig.idle()
  })
})

describe('prefetch', () => {
  const resized = (own: { concurrency: number; prefetch: number; hasOwnPrefetch: boolean }, n: number) => {
    const slots = new Slots([{ queue: 'q', ...own }], ['k'])
    slots.resize({ q: { concurrency: n } })
    return slots.wants()[0]!.limit - n
  }
  test.each([
    ['follows the concurrency where it was not asked for', 10, false, 3, 3],
    ['is at most a hundred', 10, false, 500, 100],
    ['stays what it was asked to be', 5, true, 3, 5],
    ['stays none where none was asked for', 0, true, 20, 0],
  ])('%s', (_, prefetch, hasOwnPrefetch, concurrency, expected) => {
    expect(resized({ concurrency: 10, prefetch, hasOwnPrefetch }, concurrency)).toBe(expected)
  })
})

describe('the setting', () => {
  test('is a whole number from 1 to 1,000, or null', async () => {
    for (const bad of [0, 1_001, 1.5, '5', Number.NaN]) {
      await expect(concurrency(bad as number)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        path: 'concurrency',
      })
    }
    for (const bad of ['0', '1001', '1.5', '"x"', '[]', '99999999999']) {
      expect(await rig.db.refusal(`select rowlock.set_queue('default', '{"concurrency": ${bad}}')`)).toBe(
        'RL001',
      )
    }
    await concurrency(1_000)
    await rig.rowlock.setQueue('default', { retentionDays: 7 })
    const stored = `select concurrency from rowlock.queue where name = 'default'`
    expect(await rig.db.value(stored)).toBe(1_000)
    await concurrency(null)
    expect(await rig.db.value(stored)).toBe(null)
  })

  test('that is mistyped is told the name it was meant to be', async () => {
    const text = `select rowlock.set_queue('default', '{"concurency": 5}')`
    await expect(rig.db.sql(text)).rejects.toThrow(/did you mean concurrency/)
  })
})
