// Why a job waits, how it runs, how it ended: each reason from a situation that has it, told so that a newcomer finds
// out from the sentence alone.

import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, type Reason, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { endLease, enqueue, fill, type Hand, held, register as registerHand, verb } from './by-hand.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('why')
  rowlock = createRowlock({ connectionString: db.url })
})
const TABLES = [
  'waiting',
  'running',
  'worker',
  'queue',
  'audit',
  'cancel_request',
  'attempt',
  'dedupe',
  'finished',
]
const opened: pg.Client[] = []
afterEach(async () => {
  // A transaction that a failed test left open would hold up the next one.
  await Promise.all(opened.splice(0).map((session) => session.end().catch(() => {})))
  const prepared = await db.sql('select gid from pg_prepared_xacts where database = current_database()')
  for (const { gid } of prepared) await db.sql(`rollback prepared '${gid}'`)
  await db.sql(TABLES.map((table) => `delete from rowlock.${table}`).join(';'))
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const why = async (id: string): Promise<readonly Reason[]> => rowlock.why(id)
const codes = async (id: string) => (await why(id)).map(({ reason }) => reason)
const first = async (id: string) => (await why(id))[0]!

/** A worker by hand that serves these queues and kinds. */
async function serve(
  queues: Record<string, object> = { default: { concurrency: 2 } },
  kinds = ['k'],
  name = 'w1',
): Promise<Hand> {
  const hand = await registerHand(db)
  const text = 'update rowlock.worker set queues = $2, kinds = $3, name = $4 where id = $1'
  await db.sql(text, [hand.id, queues, kinds, name])
  return hand
}
const facts = (hand: Hand, more: object) =>
  db.sql(`select rowlock.heartbeat($1, '[]', $2)`, [hand.id, JSON.stringify(more)])

/** A session with a transaction open; ended with the test. */
async function open(text?: string, values?: unknown[]): Promise<pg.Client> {
  const session = await db.session()
  opened.push(session)
  await session.query(`set application_name = 'reports'`)
  await session.query('begin')
  if (text !== undefined) await session.query(text, values)
  return session
}
const pidOf = async (session: pg.Client) =>
  (await session.query('select pg_backend_pid() as pid')).rows[0].pid as number

describe('a job that waits', () => {
  test('for its time: until when, and how it is made due', async () => {
    await serve()
    const id = await enqueue(db, { delay: '3 hours' })
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'scheduled', since: expect.any(Date), until: expect.any(Date) })
    expect(reason.says).toMatch(/due at \d.*\(in 2 h 59 min\)\. rowlock run-now \d+/)
    expect(await codes(id)).toEqual(['scheduled'])
  })

  test('for its next attempt: what failed, which failure it was, until when', async () => {
    const hand = await serve()
    const id = await enqueue(db, { max_attempts: 7, backoff: { type: 'fixed', delay_ms: 600_000 } })
    const { jobs } = await hand.claim()
    const error = { name: 'Error', message: 'connect ECONNREFUSED 10.0.0.1\nat …' }
    await verb(db, 'fail', [held(jobs[0]!, { outcome: 'failed', cause: 'ECONNREFUSED', error, ran_ms: 1 })])
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'retry_later',
      detail: { cause: 'ECONNREFUSED', failures: 1, max_attempts: 7, attempt: 1 },
    })
    expect(reason.says).toMatch(
      /attempt 1 failed \(ECONNREFUSED\): connect ECONNREFUSED 10\.0\.0\.1; that is failure 1 of 7\. .*\(in 9 min\)/,
    )
  })

  test('for its handler put it off', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    const { jobs } = await hand.claim()
    await verb(db, 'snooze', [held(jobs[0]!, { after_ms: 60_000, ran_ms: 1 })])
    expect(await first(id)).toMatchObject({ reason: 'scheduled', detail: { snoozed: true } })
    expect((await first(id)).says).toMatch(/^its handler put it off/)
  })

  test('for its queue is paused: since when, by whom, why, and what to type', async () => {
    await serve({ "ana's queue": { concurrency: 1 } })
    const id = await enqueue(db, { queue: "ana's queue" })
    await rowlock.pause("ana's queue", { actor: 'bo', reason: 'an older one' })
    await rowlock.resume("ana's queue")
    await rowlock.pause("ana's queue", { actor: 'ana', reason: 'provider down' })
    const [reason, ...rest] = await why(id)
    expect(rest).toEqual([])
    expect(reason).toMatchObject({
      reason: 'paused',
      since: expect.any(Date),
      detail: { queue: "ana's queue", actor: 'ana', reason: 'provider down' },
    })
    expect(reason!.says).toMatch(
      /queue ana's queue is paused since \d\d:\d\d:\d\d \S+ \(\d+ m?s ago\) by ana: provider down\. rowlock resume 'ana'\\''s queue'/,
    )
  })

  test('for no worker serves its queue: which are served, and the one that was meant', async () => {
    const id = await enqueue(db, { queue: 'emial' })
    expect((await first(id)).says).toMatch(/no worker lives at all/)
    await serve({ email: {}, default: {} })
    await endLease(db, await serve({ emial: {} }))
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'no_worker', detail: { served: ['default', 'email'] } })
    expect(reason.says).toMatch(/no living worker serves queue emial; .*did you mean email/)
  })

  test('for no worker handles its kind: which kinds they handle', async () => {
    const id = await enqueue(db, {}, 'sendEmial')
    await serve(undefined, ['sendEmail', 'resize'])
    await serve({ other: {} }, ['sendEmial'])
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'no_handler', detail: { handled: ['resize', 'sendEmail'] } })
    expect(reason.says).toMatch(
      /none handles kind sendEmial; they handle: resize, sendEmail; did you mean sendEmail/,
    )
  })

  test('for all workers are draining', async () => {
    const id = await enqueue(db)
    const hand = await serve()
    await facts(hand, { draining: true })
    expect(await codes(id)).toEqual(['workers_draining'])
    await serve()
    expect(await codes(id)).toEqual(['due'])
  })

  test('for all slots of all workers are taken; one free slot is enough', async () => {
    const hand = await serve()
    await fill(db, 2)
    await hand.claim({ limit: 2 })
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'workers_full', detail: { slots: 2, held: 2 } })
    expect(reason.says).toMatch(
      /all 1 worker\(s\) .* busy: 2 job\(s\) of queue default are claimed for 2 slot\(s\)/,
    )
    await rowlock.setQueue('default', { concurrency: 3 })
    expect(await codes(id)).toEqual(['due'])
    await rowlock.setQueue('default', { concurrency: 1 })
    expect(await codes(id)).toEqual(['workers_full'])
    await serve(undefined, undefined, 'w2')
    expect(await codes(id)).toEqual(['due'])
  })

  test('for handlers that ignored their signal hold the slots, or a job that runs alone', async () => {
    const hand = await serve()
    await facts(hand, { stuck: 2 })
    await fill(db, 2)
    await hand.claim({ limit: 2 })
    const id = await enqueue(db)
    expect((await first(id)).says).toMatch(/2 slot\(s\) are held by handlers that ignored their signal/)
    await db.sql(`delete from rowlock.running where id <> (select min(id) from rowlock.running)`)
    expect(await codes(id)).toEqual(['due'])
    await db.sql('update rowlock.running set losses = 2')
    expect((await first(id)).says).toMatch(/job \d+ runs alone/)
  })

  test('for it was lost with its worker: it is claimed alone', async () => {
    await serve()
    const id = await enqueue(db)
    await db.sql('update rowlock.waiting set losses = 2')
    expect(await first(id)).toMatchObject({ reason: 'suspect', detail: { losses: 2 } })
  })

  test('behind others: in its line, of other kinds that wait longer, and of higher priority', async () => {
    const hand = await serve(undefined, ['k', 'other'])
    const past = (age: string) => `clock_timestamp() - interval '${age}'`
    await fill(db, 3, { available_at: past('1 min') })
    await fill(db, 5, { available_at: past('1 min'), kind: `'other'` })
    await fill(db, 7, { priority: '5', kind: `'other'` })
    const id = await enqueue(db)
    // None of these comes first: later, of a lower priority, scheduled, of a foreign kind or queue.
    await fill(db, 11, { available_at: 'clock_timestamp()', kind: `'other'` })
    await fill(db, 13, { available_at: past('1 h'), priority: '-1' })
    await fill(db, 17, { available_at: `clock_timestamp() + interval '1 h'`, priority: '5' })
    await fill(db, 19, { priority: '5', kind: `'foreign'` })
    await fill(db, 23, { available_at: past('1 min'), queue: `'foreign'` })
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'behind',
      detail: { ahead: 15, about: false, in_line: 3, beside: 5, higher: 7 },
    })
    await facts(hand, { by_queue: { default: { done: 10, failed: 5 } } })
    expect((await first(id)).says).toMatch(
      /15 due job\(s\) .* at 15 a minute, as in the last one, that is 1 min/,
    )
  })

  test('behind more than are counted: their number is bounded, and said to be', async () => {
    await serve()
    await fill(db, 10_050)
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'behind', detail: { ahead: 10_000, about: true } })
    expect(reason.says).toMatch(/^more than 10000 due job/)
  })

  test('for nothing: the next look takes it; for long: whose logs to read', async () => {
    await serve()
    const id = await enqueue(db)
    expect(await first(id)).toMatchObject({ reason: 'due', since: expect.any(Date) })
    await db.sql(`update rowlock.waiting set available_at = available_at - interval '5 min'`)
    expect((await first(id)).says).toMatch(/due since .*\(5 min ago\).*see the logs of w1/)
  })

  test('and expires: until when, and when it is over', async () => {
    await serve()
    const id = await enqueue(db, { expires_in: '1 hour', delay: '2 hours' })
    const [, expires] = await why(id)
    expect(expires).toMatchObject({ reason: 'expires', until: expect.any(Date) })
    expect(expires!.says).toMatch(/is cancelled at .*\(in 59 min\)/)
    await db.sql(`update rowlock.waiting set expires_at = clock_timestamp() - interval '1 min'`)
    expect((await why(id))[1]!.says).toMatch(/it expired at .*\(1 min ago\)/)
  })

  test('though it was asked to be cancelled while it ran', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    const { jobs } = await hand.claim()
    // The worker's word and the request cross.
    await db.sql(`insert into rowlock.cancel_request values ($1, now(), 'ana', 'wrong file')`, [id])
    await db.sql(
      `with gone as (delete from rowlock.running returning *)
       insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, input, attempt)
       select id, available_at, enqueued_at, queue, kind, input, attempt from gone`,
    )
    expect(jobs).toHaveLength(1)
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'cancel_requested',
      detail: { actor: 'ana', reason: 'wrong file' },
    })
    expect(await codes(id)).toEqual(['cancel_requested'])
  })

  test('has all its reasons, the most important first', async () => {
    const id = await enqueue(db, { delay: '1 hour', expires_in: '2 hours' })
    await rowlock.pause('default')
    const session = await open('select from rowlock.waiting for update')
    expect(await codes(id)).toEqual(['scheduled', 'paused', 'row_locked', 'no_worker', 'expires'])
    await session.query('rollback')
  })
})

describe('a job whose row somebody has', () => {
  const LOCKS: [string, (session: pg.Client) => Promise<unknown>][] = [
    ['a lock', (s) => s.query('select from rowlock.waiting for update')],
    ['the weakest lock', (s) => s.query('select from rowlock.waiting for key share')],
    ['an update', (s) => s.query('update rowlock.waiting set priority = 3')],
    ['a delete', (s) => s.query('delete from rowlock.waiting')],
    ['a cancel', (s) => s.query('select rowlock.cancel(id) from rowlock.waiting')],
    [
      'a lock in a savepoint',
      async (s) => {
        await s.query('savepoint a')
        await s.query('savepoint b')
        await s.query('select from rowlock.waiting for update')
        await s.query('release savepoint b')
      },
    ],
    [
      'a lock, and an update in a savepoint',
      async (s) => {
        await s.query('select from rowlock.waiting for share')
        await s.query('savepoint a')
        await s.query('update rowlock.waiting set priority = 3')
      },
    ],
  ]
  test.each(LOCKS)('%s: by whom, since when, and what that session does', async (_, lock) => {
    await serve()
    const id = await enqueue(db)
    const session = await open()
    await lock(session)
    const pid = await pidOf(session)
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'row_locked',
      since: expect.any(Date),
      detail: { pid, application_name: 'reports', state: 'idle in transaction', is_self: false },
    })
    expect(reason.says).toMatch(
      new RegExp(`^pid ${pid} \\(reports, user \\S+\\).*idle in transaction.*terminate_backend\\(${pid}\\)`),
    )
    expect(await codes(id)).toEqual(['row_locked'])
    await session.query('rollback')
    expect(await codes(id)).toEqual(['due'])
  })

  test('a lock that was taken back, or whose transaction is over: nobody', async () => {
    await serve()
    const id = await enqueue(db)
    const session = await open('savepoint a')
    await session.query('select from rowlock.waiting for update')
    await session.query('rollback to savepoint a')
    expect(await codes(id)).toEqual(['due'])
    await session.query('update rowlock.waiting set input = null')
    await session.query('commit')
    expect(await codes(id)).toEqual(['due'])
  })

  test('a lock in a savepoint that was released: one of those that it may be', async () => {
    await serve()
    const id = await enqueue(db)
    const younger = await open('savepoint a')
    const sessions = [await open('lock rowlock.waiting in row share mode'), await open('savepoint a')]
    const elder = await open(
      `select from rowlock.waiting where id = 0 for update; select pg_current_xact_id()`,
    )
    for (const session of sessions) await session.query('select pg_current_xact_id()')
    const [, session] = sessions
    await session!.query('savepoint b; select from rowlock.waiting for update; release b')
    await younger.query('select pg_current_xact_id(); lock rowlock.waiting in row share mode')
    const reasons = await why(id)
    const pids = await Promise.all([...sessions, elder].map(pidOf))
    expect(reasons.map(({ detail }) => detail.pid).sort()).toEqual(pids.sort())
    expect(reasons[0]!.says).toMatch(/^pid \d+ \(.*\) may be the one that has its row locked/)
    await session!.query('rollback')
    expect(await codes(id)).toEqual(['due'])
  })

  test('two sessions that share a lock: both', async () => {
    await serve()
    const id = await enqueue(db)
    const sessions = [await open(), await open()]
    for (const session of sessions) await session.query('select from rowlock.waiting for share')
    const pids = await Promise.all(sessions.map(pidOf))
    const reasons = await why(id)
    expect(reasons.map(({ reason }) => reason)).toEqual(['row_locked', 'row_locked'])
    expect(reasons.map(({ detail }) => detail.pid).sort()).toEqual(pids.sort())
    for (const session of sessions) await session.query('rollback')
    expect(await codes(id)).toEqual(['due'])
  })

  test('a session that waits itself: for what', async () => {
    await serve()
    const id = await enqueue(db)
    const holder = await open('select pg_advisory_xact_lock(4711)')
    const session = await open('select from rowlock.waiting for update')
    const waits = session.query('select pg_advisory_xact_lock(4711)')
    await expect.poll(async () => (await first(id)).says).toMatch(/active and waits for Lock advisory/)
    await holder.query('rollback')
    await waits
    await session.query('rollback')
  })

  test('a prepared transaction: its name, and how it is ended', async () => {
    await serve()
    const id = await enqueue(db)
    const session = await open('select from rowlock.waiting for update')
    await session.query(`prepare transaction 'left behind'`)
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'row_locked', detail: { gid: 'left behind' } })
    expect(reason.says).toMatch(/prepared transaction left behind .*rollback prepared 'left behind'/)
    await db.sql(`rollback prepared 'left behind'`)
    expect(await codes(id)).toEqual(['due'])
  })

  test('the transaction that asks: it says so', async () => {
    await serve()
    const id = await enqueue(db)
    const session = await open('select from rowlock.waiting for update')
    expect((await rowlock.in(session).why(id)).map(({ says }) => says)).toEqual([
      expect.stringMatching(/^the transaction that asks has its row locked/),
    ])
    await session.query('rollback')
    await session.query('begin; savepoint a')
    const { rows } = await session.query(`select id from rowlock.enqueue('k', '{}')`)
    const [reason] = await rowlock.in(session).why(rows[0].id)
    expect(reason!.says).toMatch(/^the transaction that asks has put it in/)
    await session.query('rollback')
  })
})

describe('to ask', () => {
  test('blocks nobody, and writes nothing, also in a transaction that stays open', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    const session = await open()
    const ask = async () => (await session.query('select reason from rowlock.why($1)', [id])).rows
    expect(await ask()).toEqual([{ reason: 'due' }])
    const { rows } = await session.query(
      `select pg_current_xact_id_if_assigned() as xid,
              (select count(*)::integer from pg_locks
                where pid = pg_backend_pid() and mode <> 'AccessShareLock' and locktype <> 'virtualxid') as locks`,
    )
    expect(rows).toEqual([{ xid: null, locks: 0 }])
    expect((await hand.claim()).ids).toEqual([id])
    await session.query('rollback')
  })

  test('sees anew what other sessions do, within one transaction', async () => {
    await serve()
    const id = await enqueue(db)
    const asks = await open()
    const session = await open('select from rowlock.waiting for update')
    const state = async () =>
      (await asks.query(`select detail ->> 'query' as query from rowlock.why($1)`, [id])).rows[0].query
    expect(await state()).toMatch(/^select from/)
    await session.query('select 4711')
    expect(await state()).toBe('select 4711')
    await session.query('rollback')
    await asks.query('rollback')
  })

  test.each(['repeatable read read only', 'serializable read only deferrable', 'serializable'])(
    'is possible in a transaction that is %s',
    async (mode) => {
      await serve()
      const id = await enqueue(db)
      const holder = await open('select from rowlock.waiting for update')
      const session = await db.session()
      await session.query(`begin isolation level ${mode}`)
      expect((await rowlock.in(session).why(id)).map(({ reason }) => reason)).toEqual(['row_locked'])
      expect(await rowlock.in(session).story(id)).toHaveLength(2)
      expect(await rowlock.in(session).queues()).toHaveLength(1)
      expect(await rowlock.in(session).workers()).toHaveLength(1)
      await session.query('commit')
      await holder.query('rollback')
    },
  )

  test('for a job that is not there is refused', async () => {
    await expect(why('999999999')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
    await expect(why('1e3')).rejects.toMatchObject({ code: 'INVALID_OPTION', path: 'id' })
  })
})

describe('a job that runs', () => {
  const claimOne = async (options: Record<string, unknown> = {}) => {
    const hand = await serve()
    const id = await enqueue(db, options)
    const { jobs } = await hand.claim()
    return { hand, id, job: jobs[0]! }
  }

  test('claimed a moment ago: the next beat tells whether it has started', async () => {
    const { id } = await claimOne()
    expect((await first(id)).says).toMatch(/worker w1 claimed it at .*told by the next beat/)
    expect(await codes(id)).toEqual(['running'])
  })

  test('started: on which worker, since when, until when', async () => {
    const { id, job } = await claimOne({ timeout: '10 min' })
    await verb(db, 'start', [held(job)])
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'running', detail: { worker: 'w1', attempt: 1 } })
    expect(reason.says).toMatch(
      /attempt 1 runs on worker w1 since .* until .*\(in 9 min\)\. The lease holds until/,
    )
  })

  test('claimed ahead of a free slot: what it waits for', async () => {
    const hand = await serve()
    await fill(db, 2)
    const id = await enqueue(db, { expires_in: '1 hour' })
    await hand.claim({ limit: 3 })
    await facts(hand, {})
    const [reason, expires] = await why(id)
    expect(reason).toMatchObject({ reason: 'prefetched', detail: { held: 3, slots: 2 } })
    expect(reason!.says).toMatch(/waits for a free slot there \(3 jobs of queue default for 2 slots\)/)
    expect(expires).toMatchObject({ reason: 'expires' })
    await db.sql('update rowlock.running set losses = 2')
    expect((await first(id)).says).toMatch(/to run alone/)
  })

  test('beyond its timeout', async () => {
    const { id, job } = await claimOne({ timeout: '1 min' })
    await verb(db, 'start', [held(job)])
    await db.sql(`update rowlock.running set started_at = clock_timestamp() - interval '4 min'`)
    expect(await codes(id)).toEqual(['overdue', 'running'])
    expect((await first(id)).says).toMatch(/has run for 4 min, and may for 1 min: .*the handler ignores it/)
  })

  test('though it was asked to be cancelled: by whom, why', async () => {
    const { id } = await claimOne()
    await rowlock.cancel(id, { actor: 'ana', reason: 'wrong file' })
    expect(await codes(id)).toEqual(['cancel_requested', 'running'])
    expect((await first(id)).says).toMatch(
      /asked at .* by ana: wrong file: its signal is given with the next beat/,
    )
  })

  test('under a lease that is over: who gives it back', async () => {
    const { id, hand } = await claimOne()
    await endLease(db, hand)
    expect(await codes(id)).toEqual(['lease_over'])
    expect((await first(id)).says).toMatch(/lease of worker w1 is over since .*no worker lives.*: start one/)
    await serve({ other: {} })
    expect((await first(id)).says).toMatch(/the next sweep of the worker on duty gives it back/)
    await db.sql('delete from rowlock.worker where id = $1', [hand.id])
    expect((await first(id)).says).toMatch(/is gone/)
  })

  test('in a transaction: which session has it', async () => {
    const { id, job } = await claimOne()
    const session = await open('select rowlock.hold($1, $2)', [job.id, job.claim_id])
    await verb(db, 'start', [held(job, { in_transaction: true })])
    const reason = await first(id)
    expect(reason.detail).toMatchObject({ in_transaction: true, session: { pid: await pidOf(session) } })
    expect(reason.says).toMatch(/its transaction is that of pid \d+, idle in transaction/)
    await session.query('rollback')
    expect((await first(id)).says).toMatch(/its transaction is gone/)
  })
})

describe('a job that ended', () => {
  const end = async (name: string, more: object, options: Record<string, unknown> = {}) => {
    const hand = await serve()
    const id = await enqueue(db, options)
    const { jobs } = await hand.claim()
    await verb(db, name, [held(jobs[0]!, { ran_ms: 1, ...more })])
    return id
  }
  const failure = { outcome: 'failed', cause: 'Error', error: { message: 'no such user' } }

  test('done: when, and how long it took', async () => {
    const id = await end('complete', {})
    expect(await why(id)).toMatchObject([{ reason: 'done', detail: { attempt: 1 } }])
    expect((await first(id)).says).toMatch(/it is done since .*, after \d+ ms of attempt 1$/)
  })

  test('failed for good: the error, and how it is run again', async () => {
    const id = await end('fail', { ...failure, permanent: true })
    const says = /failed for good at .* \(Error\): no such user: .*rowlock retry \d+ runs it again/
    expect((await first(id)).says).toMatch(says)
    const again = await rowlock.retry(id)
    expect(await first(id)).toMatchObject({ reason: 'failed', detail: { retried_as: again.id } })
    expect((await first(id)).says).toMatch(new RegExp(`run again as job ${again.id}`))
  })

  test('cancelled: by whom and why, or for it expired', async () => {
    const id = await enqueue(db)
    await rowlock.cancel(id, { actor: 'ana', reason: 'a test' })
    expect((await first(id)).says).toMatch(/it was cancelled at .* by ana: a test\. rowlock retry/)
    const late = await enqueue(db, { expires_in: '0 s' })
    await db.sql('select rowlock.expire()')
    expect((await first(late)).says).toMatch(/expired before it started/)
  })

  test('a dead letter: the error, the failures, what to type, and what stands in the way', async () => {
    const id = await end('fail', failure, { max_attempts: 1, dedupe_key: 'one' })
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'dead_letter',
      detail: { cause: 'Error', failures: 1, max_attempts: 1 },
    })
    expect(reason.says).toMatch(
      /attempt 1 failed \(Error\): no such user, and that was failure 1 of 1\. rowlock redrive/,
    )
    const other = await enqueue(db, { dedupe_key: 'one' })
    expect((await first(id)).says).toMatch(new RegExp(`Job ${other} has its dedupe key`))
    await db.sql('delete from rowlock.dead_letter')
  })
})

describe('whatever is written in a row', () => {
  test.each([
    ['available_at', 'infinity', /due at never/],
    ['available_at', '-infinity', /due since the beginning of time/],
    ['expires_at', 'infinity', /./],
    ['expires_at', '-infinity', /./],
  ])('%s %s: there is an answer', async (column, value, says) => {
    await serve()
    const id = await enqueue(db)
    await db.sql(`update rowlock.waiting set ${column} = $1`, [value])
    expect((await first(id)).says).toMatch(says)
    expect((await rowlock.story(id)).length).toBeGreaterThan(0)
    expect(await rowlock.queues()).toHaveLength(1)
  })

  test('names, causes and reasons with percent signs, quotes and line ends: there is an answer', async () => {
    const odd = `50% "off" 'now' \\ $1 ☃`
    await serve({ [odd]: { concurrency: 1 } }, [odd], odd)
    const id = await enqueue(db, { queue: odd }, odd)
    await rowlock.pause(odd, { actor: odd, reason: `${odd}\nand more` })
    expect((await first(id)).says).toContain(`queue ${odd} is paused`)
    await rowlock.resume(odd)
    expect(await codes(id)).toEqual(['due'])
  })

  test('facts of another program that are not what ours are: there is an answer', async () => {
    const hand = await serve({ default: { concurrency: 'many' } })
    const id = await enqueue(db)
    await facts(hand, { by_queue: 'none', running: 'x', stuck: null, lag_ms: 1e30, draining: null })
    expect(await codes(id)).toEqual(['due'])
    await db.sql(`update rowlock.worker set queues = '["default"]'`)
    expect(await codes(id)).toEqual(['due'])
    expect(await rowlock.workers()).toMatchObject([{ running: 0, stuck: 0, lagMs: 2_147_483_647 }])
    expect(await rowlock.queues()).toMatchObject([{ queue: 'default', donePerMinute: 0 }])
  })
})
