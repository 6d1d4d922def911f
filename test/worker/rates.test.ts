// What ended in the last minute, as a worker counts it and tells it with its beats.

import { defineJob, fixed, handle, handleInTransaction, permanent, snooze } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Rates } from '../../src/worker/rates.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

describe('the last minute', () => {
  let nowMs = 0
  const rates = () => {
    nowMs = 12_345_000
    return new Rates(() => nowMs)
  }
  const done = { verb: 'complete', queue: 'q' } as const
  const failed = { verb: 'fail', queue: 'q' } as const

  test('of a queue where nothing ended is zero', () => {
    expect(rates().of('q')).toEqual({ done: 0, failed: 0, retried: 0 })
  })

  test('counts what ended well, what failed, and what of that is tried again', () => {
    const counted = rates()
    for (let n = 0; n < 5; n++) counted.note(done, 'done')
    counted.note(failed, 'retryable')
    counted.note(failed, 'dead_letter')
    counted.note({ verb: 'complete', queue: 'other' }, 'done')
    expect(counted.of('q')).toEqual({ done: 5, failed: 2, retried: 1 })
    expect(counted.of('other')).toEqual({ done: 1, failed: 0, retried: 0 })
  })

  test('does not count what went back, was put off or cancelled', () => {
    const counted = rates()
    counted.note({ verb: 'hand_back', queue: 'q' }, 'queued')
    counted.note({ verb: 'snooze', queue: 'q' }, 'queued')
    counted.note({ verb: 'abandon', queue: 'q' }, 'cancelled')
    counted.note(failed, 'cancelled')
    counted.note({ verb: 'complete' }, 'done')
    expect(counted.of('q')).toEqual({ done: 0, failed: 0, retried: 0 })
  })

  test('slides: a steady rate stays what it is at any moment, and ends a minute after its last end', () => {
    const counted = rates()
    for (let second = 0; second < 200; second++) {
      counted.note(done, 'done')
      counted.note(done, 'done')
      nowMs += 1_000
      if (second >= 70) expect([119, 120, 121, 122]).toContain(counted.of('q').done)
    }
    nowMs += 30_000
    expect(counted.of('q').done).toBe(60)
    nowMs += 45_000
    expect(counted.of('q').done).toBe(0)
    counted.note(done, 'done')
    expect(counted.of('q').done).toBe(1)
    nowMs += 3_600_000
    expect(counted.of('q').done).toBe(0)
  })
})

describe('a worker', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await makeRig('rates')
  })
  afterEach(() => rig.rest())
  afterAll(() => rig.drop())

  const job = defineJob<string>('job', { queue: 'email', retry: { backoff: fixed('1h') } })
  const paid = defineJob<string>('paid', { queue: 'email' })

  test('tells with its beats what runs, waits and ended, queue by queue', async () => {
    const ends: (() => void)[] = []
    await rig.start({
      heartbeat: 100,
      handlers: [
        handle(job, async ({ input }) => {
          if (input === 'fail') throw new Error('no')
          if (input === 'broken') throw permanent('never')
          if (input === 'later') return snooze('1h')
          if (input === 'long') await new Promise<void>((resolve) => ends.push(resolve))
          return undefined
        }),
        handleInTransaction(paid, async ({ tx }) => void (await tx.query('select 1'))),
      ],
      queues: { email: { concurrency: 2, prefetch: 1 }, quiet: {} },
    })
    const first = ['', '', '', 'fail', 'broken', 'later'].map((input) => job.with(input))
    await rig.rowlock.enqueueMany([...first, paid.with('')])
    const facts = () => rig.db.value(`select facts -> 'by_queue' from rowlock.worker`)
    await until('all of it is told', async () => (await facts())?.email.done === 4)
    await until('failures too', async () => (await facts()).email.failed === 2)
    await rig.rowlock.enqueueMany(Array.from({ length: 3 }, () => job.with('long')))
    await until('they run', () => ends.length === 2)
    await until('what runs is told', async () => (await facts()).email.prefetched === 1)
    expect(await facts()).toEqual({
      email: { running: 2, stuck: 0, prefetched: 1, concurrency: 2, done: 4, failed: 2, retried: 1 },
      quiet: { running: 0, stuck: 0, prefetched: 0, concurrency: 10, done: 0, failed: 0, retried: 0 },
    })
    for (const end of ends) end()
    await until('the third runs', () => ends.length === 3)
    ends[2]!()
  })
})
