// Where a worker begins to look: each rule of its own, and all of them under an old snapshot.

import { defineJob, handle } from 'rowlock'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedJob } from '../../src/engine/claim.ts'
import { Frontier } from '../../src/worker/frontier.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

const TRAIL_MS = 250

function claimed(id: number, line: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id: String(id),
    claimId: 'c',
    queue: 'q',
    kind: 'k',
    priority: 0,
    attempt: 1,
    failures: 0,
    input: null,
    isLarge: false,
    availableAtMs: id * 1000,
    enqueuedAtMs: 0,
    timeoutMs: null,
    maxAttempts: null,
    tenantId: null,
    dedupeKey: null,
    idempotencyKey: null,
    metadata: null,
    retriedFrom: null,
    losses: 0,
    expiresAt: null,
    ...line,
  }
}

describe('a frontier', () => {
  let frontier: Frontier
  let now: number
  beforeEach(() => {
    frontier = new Frontier()
    now = 1_000_000
  })
  const full = (lookedMs: number, ...jobs: ClaimedJob[]) => frontier.note(jobs, true, lookedMs, now)
  const partial = (lookedMs: number, ...jobs: ClaimedJob[]) => frontier.note(jobs, false, lookedMs, now)
  /** A full look that was measured slow, after normal ones. */
  const slow = (lookedMs = 20, ...jobs: ClaimedJob[]) => {
    full(1)
    full(lookedMs, ...jobs)
  }
  const at = (from: ReturnType<Frontier['from']>) =>
    from && Object.values(from).flatMap((places) => places.map(({ id }) => id))
  const ids = (queue = 'q') => at(frontier.from(queue, now))

  test('a full look is the normal case, however many jobs were found', () => {
    for (let n = 0; n < 100; n++) {
      full(1 + (n % 2), claimed(n))
      now += 10
      expect(ids()).toBeUndefined()
    }
  })

  test('only a look above three times a normal one puts the next full look off', () => {
    full(1, claimed(1))
    full(2.9, claimed(2))
    now += TRAIL_MS
    expect(ids()).toBeUndefined()
    full(3.5, claimed(3))
    now += 60
    // Put off by 20 × 3.5 ms; nothing is old enough yet but what was seen before.
    expect(ids()).toEqual(['2'])
  })

  test('by twenty times its cost, and by a second at the most', () => {
    full(1)
    full(10)
    expect(frontier.isFullDue(now + 199)).toBe(false)
    expect(frontier.isFullDue(now + 200)).toBe(true)
    full(500)
    expect(frontier.isFullDue(now + 999)).toBe(false)
    expect(frontier.isFullDue(now + 1_000)).toBe(true)
  })

  test('a look that took long because it took much is not slow', () => {
    full(1)
    full(3.7, ...Array.from({ length: 500 }, (_, n) => claimed(n)))
    expect(frontier.isFullDue(now)).toBe(true)
  })

  test('in between it begins where it stood 250 ms ago, by the time of the claim', () => {
    slow(50, claimed(1))
    now += 100
    partial(1, claimed(2))
    now += 100
    partial(1, claimed(3))
    expect(ids()).toBeUndefined()
    now += 51
    expect(ids()).toEqual(['1'])
    now += 100
    expect(ids()).toEqual(['2'])
  })

  test('it is the last row returned, backwards too', () => {
    slow(50, claimed(9))
    now += 10
    partial(1, claimed(4))
    now += TRAIL_MS
    expect(ids()).toEqual(['4'])
    expect({ ...frontier.from('q', now) }).toEqual({
      k: [{ priority: 0, at: new Date(4_000).toISOString(), id: '4' }],
    })
  })

  test('an empty look moves nothing', () => {
    slow(50, claimed(5))
    now += TRAIL_MS
    partial(1)
    expect(ids()).toEqual(['5'])
  })

  test('each line has its own, and a line that is not known is looked at from its beginning', () => {
    slow(50, claimed(1), claimed(2, { priority: 5 }), claimed(3, { kind: 'l' }), claimed(4, { queue: 'r' }))
    now += TRAIL_MS
    expect(ids()?.sort()).toEqual(['1', '2', '3'])
    expect(ids('r')).toEqual(['4'])
    expect(ids('s')).toEqual([])
  })

  test('dropped, it is looked at everything again', () => {
    slow(50, claimed(1))
    now += TRAIL_MS
    expect(ids()).toEqual(['1'])
    frontier.drop()
    expect(ids()).toBeUndefined()
    expect(frontier.isFullDue(now)).toBe(true)
  })

  test('its trail does not grow', () => {
    slow(50, claimed(1))
    for (let n = 2; n < 10_000; n++) {
      now += 1
      partial(1, claimed(n))
      if (n % 40 === 0) full(50)
    }
    expect(Number(ids()![0])).toBeGreaterThan(9_999 - TRAIL_MS - 2)
  })
})

describe('under an old snapshot', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await makeRig('frontier')
  })
  afterAll(() => rig.drop())

  test('a late transaction of 2,000 jobs is not left behind by a stream of 20,000', async () => {
    const job = defineJob<string>('job')
    const order: string[] = []
    const old = await rig.db.session()
    await old.query('begin isolation level repeatable read')
    await old.query('select count(*) from rowlock.waiting')
    // Enqueued before everything else, committed in the middle.
    const late = await rig.db.session()
    await late.query('begin')
    await rig.rowlock.in(late).enqueueMany(Array.from({ length: 2_000 }, () => job.with('late')))
    const handler = handle(job, ({ input }) => void order.push(input))
    await rig.start({
      handlers: [handler],
      queues: { default: { concurrency: 200, prefetch: 100 } },
      flush: 5,
    })
    let isCommitted: () => void = () => {}
    const committed = new Promise<void>((resolve) => {
      isCommitted = resolve
    })
    const stream = (async () => {
      for (let n = 0; n < 20; n++) {
        // However long the commit takes: what comes after it is what counts.
        if (n === 8) await committed
        await rig.rowlock.enqueueMany(Array.from({ length: 1_000 }, () => job.with('stream')))
        // The stream never runs dry and never piles up.
        await until('it keeps up', () => order.length > n * 1_000 - 2_000)
      }
    })()
    await until('it is under way', () => order.length > 5_000)
    await late.query('commit')
    isCommitted()
    await stream
    await rig.idle()
    await old.query('rollback')
    expect(order).toHaveLength(22_000)
    expect(await rig.db.value(`select count(*)::integer from rowlock.finished where state = 'done'`)).toBe(
      22_000,
    )
    // By order, not by time: long before the end of the stream all of the late ones have gone.
    expect(order.lastIndexOf('late')).toBeLessThan(order.length - 2_000)
  }, 180_000)
})
