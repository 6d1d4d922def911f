// What a claim takes, in which order, what it leaves alone, and what it refuses.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import {
  endLease,
  enqueue,
  enqueueMany,
  fill,
  type Hand,
  held,
  picture,
  random,
  refusal,
  register,
  seedOf,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('claim')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql(
    'truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.attempt, rowlock.worker, rowlock.dedupe',
  )
  await db.sql('truncate rowlock.queue')
  hand = await register(db)
})

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const running = () => db.value<number>('select count(*)::integer from rowlock.running')

describe('lines', () => {
  test('higher priority comes first, whatever its age', async () => {
    const { ids } = await enqueueMany(db, [
      { priority: 0, available_at: ago(100) },
      { priority: 10, available_at: ago(1) },
      { priority: -10, available_at: ago(1000) },
      { priority: 5, available_at: ago(10) },
    ])
    const order: string[] = []
    for (let i = 0; i < 4; i++) order.push(...(await hand.claim({ limit: 1 })).ids)
    expect(order).toEqual([ids[1], ids[3], ids[0], ids[2]])
  })

  test('inside a line the oldest comes first, and of one instant the lowest id', async () => {
    const at = ago(50)
    const { ids } = await enqueueMany(db, [
      { available_at: ago(10) },
      { available_at: at },
      { available_at: at },
      { available_at: ago(99) },
    ])
    const order: string[] = []
    for (let i = 0; i < 4; i++) order.push(...(await hand.claim({ limit: 1 })).ids)
    expect(order).toEqual([ids[3], ids[1], ids[2], ids[0]])
  })

  test('among kinds of one priority the one whose head has waited longest comes first', async () => {
    const kinds = ['a', 'b', 'c']
    const { ids } = await enqueueMany(db, [
      { kind: 'a', available_at: ago(10) },
      { kind: 'b', available_at: ago(30) },
      { kind: 'c', available_at: ago(20) },
    ])
    expect((await hand.claim({ limit: 1, kinds })).ids).toEqual([ids[1]])
    expect((await hand.claim({ limit: 1, kinds })).ids).toEqual([ids[2]])
    expect((await hand.claim({ limit: 1, kinds })).ids).toEqual([ids[0]])
  })

  test.each([
    ['the beginning', undefined],
    ['a frontier', { k: [{ priority: 0, at: ago(50), id: '0' }] }],
  ])('every priority of a kind is seen from %s', async (_, from) => {
    const priorities = Array.from({ length: 21 }, (_, n) => n - 10)
    await enqueueMany(db, [
      ...priorities.map((priority) => ({ priority })),
      ...priorities.map((priority) => ({ priority, kind: 'foreign' })),
    ])
    const first = await hand.claim({ limit: 5, ...(from && { from }) })
    expect(first.jobs.map(({ priority }) => priority).sort((a, b) => b - a)).toEqual([10, 9, 8, 7, 6])
    const rest = await hand.claim({ ...(from && { from }) })
    expect(rest.jobs).toHaveLength(16)
    expect(await waiting()).toBe(21)
  })

  test('jobs of kinds and queues that were not named stay where they are', async () => {
    const own = await enqueue(db)
    await enqueue(db, { priority: 10 }, 'foreign')
    await enqueue(db, { priority: 10, queue: 'other' })
    expect((await hand.claim()).ids).toEqual([own])
    expect(await waiting()).toBe(2)
  })

  test('one claim takes jobs of several queues, each within its own limit', async () => {
    for (const queue of ['a', 'b', 'c']) await enqueueMany(db, [{ queue }, { queue }, { queue }])
    const reply = await hand.claim([
      { queue: 'a', limit: 2 },
      { queue: 'b', limit: 5 },
      { queue: 'c', limit: 0 },
    ])
    expect(reply.found).toEqual({ a: 2, b: 3 })
    expect(reply.jobs).toHaveLength(5)
    expect(new Set(reply.jobs.map((job) => job.claim_id)).size).toBe(1)
  })

  test('each claim has a claim_id of its own and counts an attempt', async () => {
    await enqueue(db)
    const first = (await hand.claim()).jobs[0]!
    await verb(db, 'hand_back', [held(first)])
    const second = (await hand.claim()).jobs[0]!
    expect(second).toMatchObject({ id: first.id, attempt: first.attempt + 1, failures: 0 })
    expect(second.claim_id).not.toBe(first.claim_id)
  })
})

describe('bounds', () => {
  test.each([1, 2, 7, 100])('a limit of %i is met exactly', async (limit) => {
    await fill(db, 150)
    expect((await hand.claim({ limit })).jobs).toHaveLength(limit)
    expect(await running()).toBe(limit)
    expect(await waiting()).toBe(150 - limit)
  })

  test('no claim takes more than 1,000, whatever it asks for', async () => {
    await fill(db, 1200)
    expect((await hand.claim({ limit: 5000 })).jobs).toHaveLength(1000)
  })

  test('a limit of 0 or below takes nothing, and says when there is more', async () => {
    await enqueue(db)
    expect((await hand.claim({ limit: 0 })).jobs).toEqual([])
    expect((await hand.claim({ limit: -5 })).jobs).toEqual([])
  })

  test('a scheduled job is not taken before its time, and next_due says when that is', async () => {
    await enqueue(db, { delay: '1 hour', priority: 10 })
    const next = await enqueue(db, { delay: '10 minutes' })
    await enqueue(db, { delay: '1 minute', queue: 'other' })
    const reply = await hand.claim()
    expect(reply.ids).toEqual([])
    expect(reply.found).toEqual({})
    const dueAt = await db.value<Date>('select available_at from rowlock.waiting where id = $1', [next])
    expect(Math.abs(reply.next_due! - dueAt.getTime())).toBeLessThanOrEqual(1)
    expect((await hand.claim({ kinds: ['none'] })).next_due).toBeNull()
  })

  test('a scheduled job behind due ones of its line is not taken with them', async () => {
    const due = await enqueue(db)
    await enqueue(db, { delay: '1 minute' })
    expect((await hand.claim()).ids).toEqual([due])
  })

  test('a paused queue yields nothing, and is no reason to look again', async () => {
    await enqueue(db, { queue: 'mail' })
    const other = await enqueue(db)
    await db.sql(`select rowlock.pause('mail')`)
    const reply = await hand.claim([{ queue: 'mail' }, {}])
    expect(reply.ids).toEqual([other])
    expect((await hand.claim({ queue: 'mail' })).next_due).toBeNull()
    await db.sql(`select rowlock.resume('mail')`)
    expect((await hand.claim({ queue: 'mail' })).ids).toHaveLength(1)
  })

  test('the frontier is where a line is looked at from, by instant and then by id', async () => {
    const at = ago(50)
    const { ids } = await enqueueMany(db, [
      { available_at: ago(99) },
      { available_at: at },
      { available_at: at },
      { available_at: ago(10) },
      { available_at: ago(99), priority: 3 },
    ])
    const from = { k: [{ priority: 0, at, id: ids[2]! }] }
    // A line that is not named is looked at from its beginning.
    expect((await hand.claim({ from })).ids).toEqual([ids[4], ids[2], ids[3]])
    expect((await hand.claim({ from })).ids).toEqual([])
    expect((await hand.claim()).ids).toEqual([ids[0], ids[1]])
  })

  test('what stands before the frontier is no reason to look again', async () => {
    const { ids } = await enqueueMany(db, [{ available_at: ago(99) }, { delay: '1 hour' }])
    const from = { k: [{ priority: 0, at: ago(50), id: '0' }] }
    const reply = await hand.claim({ from })
    expect(reply.ids).toEqual([])
    const dueAt = await db.value<Date>('select available_at from rowlock.waiting where id = $1', [ids[1]])
    expect(Math.abs(reply.next_due! - dueAt.getTime())).toBeLessThanOrEqual(1)
  })
})

describe('refusals', () => {
  test('a worker whose lease is over claims nothing', async () => {
    await enqueue(db)
    await endLease(db, hand)
    await expect(hand.claim()).rejects.toMatchObject({ code: 'RL020' })
    expect(await running()).toBe(0)
    expect(await waiting()).toBe(1)
  })

  test('a worker that never registered claims nothing', async () => {
    await enqueue(db)
    await db.sql('delete from rowlock.worker')
    await expect(hand.claim()).rejects.toMatchObject({ code: 'RL020' })
  })

  const STRICT = ['repeatable read', 'serializable']
  const VERBS = {
    claim: (id: string) => `select rowlock.claim('${id}', '[{"queue":"default","limit":1,"kinds":["k"]}]')`,
    reap: () => 'select rowlock.reap()',
    cancel: () => 'select rowlock.cancel(1)',
    expire: () => 'select rowlock.expire()',
    sweep: () => 'select rowlock.sweep()',
    run_now: () => 'select rowlock.run_now(1)',
    prioritize: () => 'select rowlock.prioritize(1, 1)',
    redrive: () => 'select rowlock.redrive(1)',
    discard: () => 'select rowlock.discard(1)',
    retry: () => 'select rowlock.retry(1)',
  }
  test.each(STRICT)('verbs that look twice refuse %s', async (isolation) => {
    const session = await db.session()
    const before = await picture(db)
    for (const [name, text] of Object.entries(VERBS)) {
      await session.query(`begin isolation level ${isolation}`)
      const error = await refusal(session.query(text(hand.id)))
      expect([name, error.code]).toEqual([name, 'RL030'])
      await session.query('rollback')
    }
    expect(await picture(db)).toEqual(before)
  })

  test('a stricter isolation that is the default of a role or a database is refused as well', async () => {
    const name = await db.value('select current_database()')
    for (const scope of [`role postgres in database ${name}`, `database ${name}`]) {
      await db.sql(`alter ${scope} set default_transaction_isolation = 'repeatable read'`)
      try {
        const session = await db.session()
        await expect(hand.claim({}, session)).rejects.toMatchObject({ code: 'RL030' })
        // An own READ COMMITTED transaction is the way out.
        await session.query('begin isolation level read committed')
        await hand.claim({}, session)
        await session.query('commit')
      } finally {
        await db.sql(`alter ${scope} reset default_transaction_isolation`)
      }
    }
  })
})

describe('locks', () => {
  test('rows that others hold are passed by, and found afterwards', async () => {
    const { ids } = await enqueueMany(db, [{}, {}, {}])
    const other = await db.session()
    await other.query('begin')
    await other.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
    expect((await hand.claim({ limit: 2 })).ids).toEqual([ids[1], ids[2]])
    await other.query('rollback')
    expect((await hand.claim({ limit: 2 })).ids).toEqual([ids[0]])
  })

  test('only rows that were taken are locked, and a claim that is rolled back took none', async () => {
    await enqueueMany(db, [{}, {}, { kind: 'b' }, { priority: 3, delay: '1 hour' }, { queue: 'other' }])
    const session = await db.session()
    await session.query('begin')
    const { jobs } = await hand.claim(
      [
        { limit: 1, kinds: ['k', 'b'] },
        { queue: 'other', limit: 0 },
      ],
      session,
    )
    expect(jobs).toHaveLength(1)
    const free = await db.sql('select id from rowlock.waiting for update skip locked')
    expect(free).toHaveLength(4)
    expect(free.map(({ id }) => id)).not.toContain(jobs[0]!.id)
    await session.query('rollback')
    expect(await waiting()).toBe(5)
    expect(await running()).toBe(0)
  })

  test('a heartbeat passes beside a claim in flight; the end of the worker waits and leaves no orphan', async () => {
    await enqueue(db)
    const session = await db.session()
    await session.query('begin')
    await hand.claim({}, session)
    expect(await db.value('select rowlock.heartbeat($1)', [hand.id])).not.toBeNull()
    const retired = db.value('select rowlock.retire($1)', [hand.id])
    await untilBlocked(db)
    await session.query('commit')
    expect(await retired).toBe(false)
    expect(await db.value('select count(*)::integer from rowlock.worker where id = $1', [hand.id])).toBe(1)
    expect(await db.value('select rowlock.reap()')).toMatchObject([{ to: 'queued' }])
    expect(await db.value('select count(*)::integer from rowlock.worker where id = $1', [hand.id])).toBe(0)
  })
})

describe('every plan claims the same', () => {
  const SWITCHES = [
    'seqscan',
    'indexscan',
    'bitmapscan',
    'tidscan',
    'sort',
    'nestloop',
    'hashjoin',
    'mergejoin',
    'material',
    'hashagg',
  ]

  test('whatever planner switches are off', async () => {
    const session = await db.session()
    for (const mode of ['auto', 'force_generic_plan', 'force_custom_plan']) {
      for (const off of SWITCHES) {
        await db.sql('truncate rowlock.waiting, rowlock.running')
        await fill(db, 40)
        await fill(db, 5, { priority: '3' })
        await session.query('discard all')
        await session.query(`set enable_${off} = off; set plan_cache_mode = ${mode}`)
        const counts: number[] = []
        for (const limit of [1, 5, 100]) counts.push((await hand.claim({ limit }, session)).jobs.length)
        expect([mode, off, counts]).toEqual([mode, off, [1, 5, 39]])
      }
    }
  })

  test('a plan made for an empty table serves 100,000 jobs', async () => {
    const session = await db.session()
    await db.sql('alter table rowlock.waiting set (autovacuum_enabled = off)')
    await db.sql('vacuum analyze rowlock.waiting')
    for (let i = 0; i < 8; i++) expect((await hand.claim({ limit: 5 }, session)).jobs).toEqual([])
    await fill(db, 100_000)
    for (const limit of [1, 5, 100]) expect((await hand.claim({ limit }, session)).jobs).toHaveLength(limit)
    await db.sql('alter table rowlock.waiting reset (autovacuum_enabled)')
  })
})

test('six claimers beside sessions that reprioritise, run and cancel: none twice, lost or too many', async () => {
  const next = random(seedOf('claim'))
  const count = 5000
  await fill(db, count, {
    id: 'n',
    priority: 'n % 3',
    available_at: "clock_timestamp() + case when n % 10 = 0 then interval '1 hour' else interval '-1 s' end",
  })
  const taken: string[] = []
  let open = true
  const claimers = Array.from({ length: 6 }, async () => {
    const own = await register(db)
    const session = await db.session()
    for (let empty = 0; empty < 3; ) {
      const { ids } = await own.claim({ limit: 20 }, session)
      expect(ids.length).toBeLessThanOrEqual(20)
      taken.push(...ids)
      if (ids.length === 0 && !open) empty++
    }
  })
  const refused = new Map<string, number>()
  const meddle = async (text: string, ...more: unknown[]) => {
    const session = await db.session()
    for (let i = 0; i < 300; i++) {
      const id = 1 + Math.floor(next() * count)
      await session
        .query(text, [id, ...more])
        .catch(({ code }) => refused.set(code, (refused.get(code) ?? 0) + 1))
    }
  }
  await Promise.all([
    meddle('select rowlock.prioritize($1, $2)', 9),
    meddle('select rowlock.prioritize($1, $2)', -9),
    meddle('select rowlock.run_now($1)'),
    meddle('select rowlock.cancel($1)'),
  ])
  await db.sql('update rowlock.waiting set available_at = clock_timestamp()')
  open = false
  await Promise.all(claimers)

  expect(new Set(taken).size).toBe(taken.length)
  expect([...refused.keys()].filter((code) => code !== 'RL012')).toEqual([])
  const cancelled = await db.value(`select count(*)::integer from rowlock.finished where state = 'cancelled'`)
  expect(taken.length + cancelled).toBe(count)
  expect(await running()).toBe(taken.length)
  expect(await waiting()).toBe(0)
})
