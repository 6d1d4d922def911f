// A bound on how much waits in a queue: who is let in, who is refused or dropped, and what it costs.

import type pg from 'pg'
import { defineJob } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, isRowlockError, type QueueSettings, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, refusal, register } from './by-hand.ts'

let db: TestRowlock
let rowlock: Rowlock
let hand: Hand
const sessions: pg.Client[] = []
beforeAll(async () => {
  db = await rowlockDatabase('max-waiting')
  rowlock = createRowlock({ connectionString: db.url })
  hand = await register(db)
})
afterEach(async () => {
  await Promise.all(sessions.splice(0).map((session) => session.end()))
  for (const table of ['waiting', 'running', 'dedupe', 'payload', 'queue', 'queue_length', 'import'])
    await db.sql(`delete from rowlock.${table}`)
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const job = defineJob<unknown>('job')
const many = (count: number, options = {}) =>
  Array.from({ length: count }, (_, n) => job.with(n, { queue: 'mail', ...options }))
const bound = (maxWaiting: number, whenFull: QueueSettings['whenFull'] = 'refuse', queue = 'mail') =>
  rowlock.setQueue(queue, { maxWaiting, whenFull })
const waiting = (queue = 'mail') =>
  db.value<number>('select count(*)::integer from rowlock.waiting where queue = $1', [queue])
const counts = () => db.value<number>('select count(*)::integer from rowlock.queue_length')
const claim = (limit: number) => hand.claim([{ queue: 'mail', limit, kinds: ['job'] }])
/** As long as it is believed that a queue is full. */
const forget = () => db.sql(`update rowlock.queue_length set counted_at = counted_at - interval '1 hour'`)
const full = { code: 'QUEUE_FULL', sqlstate: 'RL018', path: 'queue' }

describe('a queue with a bound', () => {
  test('takes jobs one by one up to it, to the job, and refuses the next', async () => {
    await bound(5)
    for (let n = 0; n < 5; n++)
      expect(await rowlock.enqueue(job, n, { queue: 'mail' })).toMatchObject({ created: true })
    const error = await rowlock.enqueue(job, 5, { queue: 'mail' }).catch((thrown) => thrown)
    expect(error).toMatchObject({
      ...full,
      message: 'queue mail is full: about 5 jobs wait in it, as many as may',
    })
    expect(error).not.toHaveProperty('index')
    expect(await waiting()).toBe(5)
  })

  test('takes jobs again when some were claimed', async () => {
    await bound(5)
    await rowlock.enqueueMany(many(5))
    await expect(rowlock.enqueueMany(many(1))).rejects.toMatchObject(full)
    await claim(2)
    await rowlock.enqueueMany(many(1))
    expect(await waiting()).toBe(4)
  })

  test('counts what is scheduled and what is to be retried', async () => {
    await bound(2)
    await rowlock.enqueueMany(many(2, { delay: '1h' }))
    await expect(rowlock.enqueueMany(many(1))).rejects.toMatchObject(full)
  })

  test('takes a call as a whole that finds room, and is a tenth above it at most when calls are small', async () => {
    await bound(200)
    for (let n = 0; n < 40; n++) {
      const outcome = await rowlock.enqueueMany(many(7)).catch((error) => error)
      if (isRowlockError(outcome, 'QUEUE_FULL')) break
    }
    const found = await waiting()
    expect(found).toBeGreaterThanOrEqual(200)
    expect(found).toBeLessThanOrEqual(220 + 7)
  })

  test('is counted once while all fits, and near its bound each time a tenth of it was added', async () => {
    const seen = new Set<string>()
    const enqueueTen = async (calls: number) => {
      for (let n = 0; n < calls; n++) {
        await rowlock.enqueueMany(many(10))
        seen.add(await db.value<string>('select max(counted_at)::text from rowlock.queue_length'))
      }
      const counted = seen.size
      seen.clear()
      return counted
    }
    await bound(1_000)
    expect(await enqueueTen(100)).toBe(1)
    expect(await waiting()).toBe(1_000)
    await claim(40)
    // Found 960: up to a hundred more are let in without a look.
    expect(await enqueueTen(10)).toBe(1)
    await expect(rowlock.enqueueMany(many(1))).rejects.toMatchObject(full)
    expect(await waiting()).toBe(1_060)
  })

  test('holds against many producers at once, but for what each of them has in flight', async () => {
    await bound(100)
    const crowd = createRowlock({ connectionString: db.url, maxConnections: 8 })
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, (_, n) =>
        crowd.enqueue(job, n, { queue: 'mail' }).then(
          () => 'in',
          (error) => error.code,
        ),
      ),
    )
    await crowd.close()
    expect([...new Set(outcomes)].sort()).toEqual(['QUEUE_FULL', 'in'])
    const found = await waiting()
    expect(found).toBe(outcomes.filter((outcome) => outcome === 'in').length)
    expect(found).toBeGreaterThanOrEqual(100)
    expect(found).toBeLessThanOrEqual(100 + 10 + 2 * 8)
  })

  test('has no count under another bound', async () => {
    await rowlock.enqueueMany(many(10))
    await bound(3, 'drop')
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ reason: 'queue_full' })
    // It was counted up to three.
    await bound(8, 'drop')
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ reason: 'queue_full' })
    await bound(30, 'drop')
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ created: true })
  })

  test('that was found full is believed to be for a while, and then counted anew', async () => {
    await bound(3, 'drop')
    await rowlock.enqueueMany(many(3))
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ created: false })
    await claim(3)
    await db.sql(`update rowlock.queue_length set took_ms = 36000`)
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ created: false, reason: 'queue_full' })
    await forget()
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ created: true })
  })

  test('is counted by the workers’ upkeep while it is full, so that who enqueues need not', async () => {
    await bound(3, 'drop')
    await rowlock.enqueueMany(many(4))
    await rowlock.enqueueMany(many(1))
    await claim(4)
    await db.sql(`update rowlock.queue_length set took_ms = 36000`)
    await db.sql('select rowlock.sweep()')
    expect((await rowlock.enqueueMany(many(1)))[0]).toMatchObject({ created: true })
    await rowlock.setQueue('mail', { maxWaiting: null })
    await db.sql('select rowlock.sweep()')
    expect(await counts()).toBe(0)
  })

  test('that is large is counted by one at a time; the others go by what they know', async () => {
    await bound(20_000)
    const session = await db.session()
    sessions.push(session)
    await session.query(`select pg_advisory_lock(rowlock.lock_key('length mail'))`)
    await rowlock.enqueueMany(many(1))
    expect(await counts()).toBe(0)
    await session.query('select pg_advisory_unlock_all()')
    const other = await db.session()
    sessions.push(other)
    // The lock of a count is not kept to the end of the transaction that it was made in.
    await other.query('begin')
    await other.query(`select rowlock.enqueue('job', '{}', '{"queue": "mail"}')`)
    await rowlock.enqueueMany(many(1))
    expect(await counts()).toBe(1)
    await other.query('rollback')
  })

  test('puts back what failed, was snoozed or redriven, and retries by hand, full or not', async () => {
    await rowlock.enqueueMany([...many(3), ...many(1, { retry: { maxAttempts: 1 } }), ...many(1)])
    await claim(5)
    const taken = await db.sql('select id::text, claim_id from rowlock.running order by id')
    await bound(2)
    await rowlock.enqueueMany(many(2))
    await forget()
    await expect(rowlock.enqueueMany(many(1))).rejects.toMatchObject(full)
    const [failed, snoozed, handed, dead, done] = taken
    await db.sql('select rowlock.finish($1)', [
      JSON.stringify({
        fail: [
          { ...failed, cause: 'Error', after_ms: 0 },
          { ...dead, cause: 'Error', after_ms: 0 },
        ],
        snooze: [{ ...snoozed, after_ms: 0 }],
        hand_back: [handed],
        complete: [done],
      }),
    ])
    expect(await waiting()).toBe(5)
    await rowlock.redrive(dead!.id)
    await rowlock.retry(done!.id)
    expect(await waiting()).toBe(7)
  })

  test('is counted under a stricter isolation too, by several at once', async () => {
    await bound(3)
    await rowlock.enqueueMany(many(1))
    const pair = [await db.session(), await db.session()]
    sessions.push(...pair)
    for (const session of pair) {
      await session.query('begin isolation level repeatable read')
      for (let n = 0; n < 4; n++) {
        await session.query('savepoint before')
        const added = session.query(`select rowlock.enqueue('job', '{}', '{"queue": "mail"}')`)
        await added.catch(() => session.query('rollback to savepoint before'))
      }
    }
    for (const session of pair) await session.query('commit')
    // Neither of them saw what the other one added.
    expect(await waiting()).toBe(5)
  })

  test('lets a duplicate in: it needs no room', async () => {
    await bound(1)
    const first = await rowlock.enqueue(job, 1, { queue: 'mail', dedupeKey: 'a' })
    const again = await rowlock.enqueue(job, 2, { queue: 'mail', dedupeKey: 'a' })
    expect(again).toEqual({ id: first.id, created: false })
    await expect(rowlock.enqueue(job, 2, { queue: 'mail', dedupeKey: 'b' })).rejects.toMatchObject(full)
    expect(await db.sql('select key from rowlock.dedupe')).toEqual([{ key: 'a' }])
  })
})

describe('a full queue that refuses', () => {
  test('refuses the whole call, of whichever queues, and names the first job without room', async () => {
    await bound(1)
    await rowlock.enqueueMany(many(1))
    const mixed = [
      job.with(1, { queue: 'free' }),
      job.with(2, { queue: 'mail' }),
      job.with(3, { queue: 'mail' }),
    ]
    await expect(rowlock.enqueueMany(mixed)).rejects.toMatchObject({ ...full, index: 1 })
    expect(await waiting('free')).toBe(0)
  })

  test('refuses a call of several statements as a whole', async () => {
    await bound(1_500)
    const calls = many(3_500)
    await expect(rowlock.enqueueMany(calls)).rejects.toMatchObject({ ...full, index: 2_000 })
    expect(await waiting()).toBe(0)
  })

  test('refuses what SQL enqueues, with the same state and detail', async () => {
    await bound(1)
    await rowlock.enqueueMany(many(1))
    const error = await refusal(db.sql(`select rowlock.enqueue('job', '{}', '{"queue": "mail"}')`))
    expect(error).toMatchObject({ code: 'RL018', detail: { path: 'queue', index: 0 } })
    await bound(1, 'refuse', 'default')
    await db.sql(`select rowlock.enqueue('job')`)
    expect(await refusal(db.sql(`select rowlock.enqueue('job')`))).toMatchObject({ code: 'RL018' })
    await expect(rowlock.enqueueMany([job.with('x'.repeat(5_000))])).rejects.toMatchObject(full)
    expect(await db.sql('select from rowlock.payload')).toEqual([])
  })

  test('leaves the caller’s transaction as it was behind a savepoint', async () => {
    await bound(1)
    await rowlock.enqueueMany(many(1))
    const session = await db.session()
    sessions.push(session)
    await session.query('begin; create table kept (id integer); savepoint before')
    await expect(rowlock.in(session).enqueue(job, 1, { queue: 'mail' })).rejects.toMatchObject(full)
    await session.query('rollback to savepoint before; commit')
    expect(await db.value(`select to_regclass('kept')::text`)).toBe('kept')
  })
})

describe('a full queue that drops', () => {
  test('answers an id of no job and the reason, and stores the others of the call', async () => {
    await bound(1, 'drop')
    await rowlock.enqueueMany(many(1))
    const mixed = [
      job.with(1, { queue: 'free' }),
      job.with(2, { queue: 'mail' }),
      job.with('x'.repeat(5_000), { queue: 'mail' }),
      job.with(4, { queue: 'free', dedupeKey: 'four' }),
    ]
    const answers = await rowlock.enqueueMany(mixed)
    expect(answers.map(({ created, reason }) => [created, reason])).toEqual([
      [true, undefined],
      [false, 'queue_full'],
      [false, 'queue_full'],
      [true, undefined],
    ])
    expect(new Set(answers.map(({ id }) => id)).size).toBe(4)
    expect(await rowlock.job(answers[1]!.id)).toBeNull()
    expect([await waiting(), await waiting('free')]).toEqual([1, 2])
    expect(await db.sql('select from rowlock.payload')).toEqual([])
  })

  test('keeps no key of a dropped job, and knows the duplicate of a live one', async () => {
    await bound(1, 'drop')
    const first = await rowlock.enqueue(job, 1, { queue: 'mail', dedupeKey: 'a' })
    await db.sql('delete from rowlock.queue_length')
    const answers = await rowlock.enqueueMany(
      ['a', 'b', 'b', 'c'].map((dedupeKey) => job.with(2, { queue: 'mail', dedupeKey })),
    )
    expect(answers[0]).toEqual({ id: first.id, created: false })
    expect(answers.slice(1).map(({ reason }) => reason)).toEqual(['queue_full', 'queue_full', 'queue_full'])
    expect(await db.sql('select key from rowlock.dedupe')).toEqual([{ key: 'a' }])
  })

  test('drops what SQL enqueues: not created', async () => {
    await bound(1, 'drop')
    await rowlock.enqueueMany(many(1))
    const [row] = await db.sql(`select created from rowlock.enqueue('job', '{}', '{"queue": "mail"}')`)
    expect(row).toEqual({ created: false })
    expect(await waiting()).toBe(1)
  })

  test('is told to a client that knows only of existing ones as not created', async () => {
    await bound(1, 'drop')
    await rowlock.enqueueMany(many(1))
    const jobs = JSON.stringify([
      { kind: 'job', queue: 'free' },
      { kind: 'job', queue: 'mail' },
    ])
    expect(await db.value('select rowlock.store($1, false, false)', [jobs])).toMatchObject({
      existing: [1],
      dropped: [1],
    })
    expect(
      await db.value(`select rowlock.store_alike('{"kind": "job", "queue": "mail"}', '[1, 2]')`),
    ).toMatchObject({ existing: [0, 1], dropped: [0, 1] })
  })

  test('an import counts what was dropped', async () => {
    await bound(1, 'drop')
    await rowlock.enqueueMany(many(1))
    await db.sql(`select rowlock.begin_import('k', 'd0')`)
    const jobs = JSON.stringify([
      { kind: 'job', input: 1, queue: 'mail' },
      { kind: 'job', input: 1, queue: 'free' },
    ])
    expect(await db.value(`select rowlock.import_jobs('k', 0, 'd0', $1, 2, 'd2')`, [jobs])).toMatchObject({
      accepted: true,
      jobs: 1,
      lines: 2,
      existing: 0,
      dropped: 1,
    })
  })
})

test('what queue has a bound is known by one block a call, whether there is one or none', async () => {
  const blocks = async (text: string, value: string) => {
    const { rows } = await session.query(`explain (analyze, buffers, format json) ${text}`, [value])
    const { Plan } = rows[0]['QUERY PLAN'][0]
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  const session = await db.session()
  sessions.push(session)
  const body = await db.value<string>(
    `select pg_get_functiondef(p.oid) from pg_proc p where p.oid = 'rowlock.store'::regproc`,
  )
  const twin = body
    .replace('rowlock.store(', 'rowlock.store_twin(')
    .replace(
      /if exists \(\s+select from "?rowlock"?.queue q/,
      'if false and exists (select from rowlock.queue q',
    )
  expect(twin).toContain('if false and')
  await db.sql(twin)
  const jobs = JSON.stringify([{ kind: 'job', input: 1, queue: 'free' }])
  await db.sql(`insert into rowlock.queue (name) select 'other ' || n from generate_series(1, 3000) as n`)
  const cost = async (verb: string) => {
    const found: number[] = []
    for (let n = 0; n < 9; n++) found.push(await blocks(`select rowlock.${verb}($1, false, false)`, jobs))
    return found.sort((a, b) => a - b)[4]!
  }
  const without = await cost('store_twin')
  const bare = await cost('store')
  expect(bare - without).toBeLessThanOrEqual(1)
  await bound(1_000)
  const beside = await cost('store')
  expect(beside - without).toBeLessThanOrEqual(1)
})
