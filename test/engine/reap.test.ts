// What becomes of the jobs of a worker that is gone: given back once, with the cause, and never too early.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import {
  endLease,
  enqueue,
  enqueueMany,
  fill,
  type Hand,
  held,
  type Row,
  register,
  stateOf,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('reap')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql(
    `truncate rowlock.waiting, rowlock.running, rowlock.attempt, rowlock.worker, rowlock.dead_letter,
              rowlock.cancel_request`,
  )
  hand = await register(db)
})

const reap = (limit = 1000): Promise<Row[]> => db.value('select rowlock.reap($1)', [limit])
const workers = () => db.value<number>('select count(*)::integer from rowlock.worker')
const job = async (id: string) => (await db.sql('select * from rowlock.job where id = $1', [id]))[0]

async function taken(options: Record<string, unknown> = {}) {
  await enqueue(db, options)
  return (await hand.claim()).jobs[0]!
}

describe('a lease that is over', () => {
  /** Late enough for what is to happen before, on a machine that is busy too. */
  const runsOutSoon = () =>
    db.value<Date>(
      `update rowlock.worker set expires_at = clock_timestamp() + interval '3 s' returning expires_at`,
    )
  const isOver = (end: Date) =>
    until('the lease is over', () => db.value<boolean>('select clock_timestamp() > $1', [end]))

  test('is not taken for over while a beat that extended it waits to commit', async () => {
    const { id } = await taken()
    const beat = await db.session()
    await beat.query('begin')
    const end = await runsOutSoon()
    await beat.query('select rowlock.heartbeat($1)', [hand.id])
    await isOver(end)
    expect(await reap()).toEqual([])
    await beat.query('commit')
    expect(await reap()).toEqual([])
    expect(await stateOf(db, id)).toBe('running')
  })

  test('is not brought back by a beat that waited for its row beyond its end', async () => {
    const other = await db.session()
    const end = await runsOutSoon()
    await other.query('begin')
    await other.query('select from rowlock.worker for no key update')
    const beat = db.value('select rowlock.heartbeat($1)', [hand.id])
    await untilBlocked(db)
    await isOver(end)
    await other.query('commit')
    expect(await beat).toBeNull()
  })

  test('gives a started job back as a failure with cause lease_lost', async () => {
    const lost = await taken()
    await verb(db, 'start', [held(lost)])
    await endLease(db, hand)
    expect(await reap()).toMatchObject([
      { id: lost.id, to: 'retryable', worker_id: hand.id, cause: 'lease_lost' },
    ])
    expect(await job(lost.id)).toMatchObject({
      state: 'retryable',
      cause: 'lease_lost',
      failures: 1,
      losses: 1,
    })
    expect((await db.sql('select * from rowlock.attempt'))[0]).toMatchObject({
      job_id: lost.id,
      attempt: 1,
      outcome: 'lost',
      cause: 'lease_lost',
      worker_id: hand.id,
      error: { message: 'the lease of the worker ran out' },
    })
  })

  test('gives one that had not started back without a failure, where it was in its line', async () => {
    const lost = await taken({ available_at: '2026-01-01T00:00:00Z' })
    await endLease(db, hand)
    expect(await reap()).toMatchObject([{ id: lost.id, to: 'queued' }])
    const back = await job(lost.id)
    expect(back).toMatchObject({ state: 'queued', cause: null, failures: 0, losses: 1, attempt: 1 })
    expect(back.available_at.toISOString()).toBe('2026-01-01T00:00:00.000Z')
    expect((await db.sql('select * from rowlock.attempt'))[0]).toMatchObject({
      outcome: 'lost',
      started_at: null,
    })
  })

  test('makes a dead letter of a job whose failures are used up', async () => {
    const lost = await taken({ max_attempts: 1 })
    await verb(db, 'start', [held(lost)])
    await endLease(db, hand)
    expect(await reap()).toMatchObject([{ to: 'dead_letter' }])
    expect(await job(lost.id)).toMatchObject({ state: 'dead_letter', cause: 'lease_lost', failures: 1 })
  })

  test('refuses what the worker sends afterwards', async () => {
    const lost = await taken()
    await endLease(db, hand)
    await reap()
    for (const name of ['complete', 'fail', 'snooze', 'hand_back', 'abandon', 'start']) {
      expect(await verb(db, name, [held(lost)])).toEqual([])
    }
    expect(await db.value('select rowlock.heartbeat($1)', [hand.id])).toBeNull()
  })

  test('that is over but not reaped still lets an outcome in', async () => {
    const late = await taken()
    await endLease(db, hand)
    expect(await verb(db, 'complete', [held(late)])).toEqual([late.id])
    expect(await reap()).toEqual([])
  })

  test('is over for ever: no heartbeat brings it back', async () => {
    await endLease(db, hand)
    const row = () => db.sql('select * from rowlock.worker')
    const before = await row()
    expect(await db.value('select rowlock.heartbeat($1)', [hand.id])).toBeNull()
    expect(await row()).toEqual(before)
  })

  test('leaves the jobs of living workers alone', async () => {
    const other = await register(db)
    await enqueueMany(db, [{}, {}])
    const own = (await hand.claim({ limit: 1 })).ids
    const [foreign] = (await other.claim()).jobs
    await endLease(db, hand)
    expect((await reap()).map(({ id }) => id)).toEqual(own)
    expect(await verb(db, 'complete', [held(foreign!)])).toEqual([foreign!.id])
  })

  test('three losses without a start leave a suspect, claimed alone; one failure of its own clears it', async () => {
    const id = await enqueue(db, { backoff: { type: 'fixed', delay_ms: 0 } })
    for (let loss = 1; loss <= 2; loss++) {
      await hand.claim()
      await endLease(db, hand)
      await reap()
      hand = await register(db)
    }
    const alone = await hand.claim()
    expect(alone).toMatchObject({ alone: true, ids: [id] })
    await verb(db, 'fail', [held(alone.jobs[0]!, { cause: 'Error' })])
    expect(await job(id)).toMatchObject({ losses: 0, failures: 1 })
  })
})

describe('a worker row', () => {
  test('goes when the last of its jobs is back, not before', async () => {
    await fill(db, 5)
    await hand.claim()
    await endLease(db, hand)
    expect(await reap(2)).toHaveLength(2)
    expect(await workers()).toBe(1)
    expect(await reap(2)).toHaveLength(2)
    expect(await workers()).toBe(1)
    expect(await reap(2)).toHaveLength(1)
    expect(await workers()).toBe(0)
    expect(await reap(2)).toEqual([])
  })

  test('that is missing leaves orphans, which are given back', async () => {
    const orphan = await taken()
    await db.sql('delete from rowlock.worker')
    expect(await reap()).toMatchObject([{ id: orphan.id, to: 'queued' }])
    expect(await db.value(`select error ->> 'message' from rowlock.attempt`)).toBe('the worker is gone')
  })

  test('takes its flags with it', async () => {
    await db.sql(`select rowlock.sleep($1, '{a,b}', clock_timestamp() + interval '1 hour')`, [hand.id])
    await endLease(db, hand)
    await reap()
    expect(await db.value('select count(*)::integer from rowlock.sleeper')).toBe(0)
  })

  test('whose claim is in flight stays until the sweep that sees what it took', async () => {
    await enqueue(db)
    const session = await db.session()
    await session.query('begin')
    const { ids } = await hand.claim({}, session)
    // Its lease ends while the claim is open: the heartbeat's own update passes beside the claim's lock.
    await endLease(db, hand)
    expect(await reap()).toEqual([])
    expect(await workers()).toBe(1)
    await session.query('commit')
    expect((await reap()).map(({ id }) => id)).toEqual(ids)
    expect(await workers()).toBe(0)
  })
})

describe('two reapers', () => {
  test('never work at once, and one that finds another leaves at once', async () => {
    const lost = await taken()
    await endLease(db, hand)
    const session = await db.session()
    await session.query('begin')
    expect((await session.query('select rowlock.reap() as moved')).rows[0].moved).toHaveLength(1)
    expect(await reap()).toEqual([])
    await session.query('rollback')
    expect((await reap()).map(({ id }) => id)).toEqual([lost.id])
  })

  test('give each job back once between them', async () => {
    await fill(db, 300)
    await hand.claim()
    await endLease(db, hand)
    const moved = (await Promise.all(Array.from({ length: 6 }, () => reap(100)))).flat()
    for (let more = await reap(100); more.length > 0; more = await reap(100)) moved.push(...more)
    expect(new Set(moved.map(({ id }) => id)).size).toBe(300)
    expect(moved).toHaveLength(300)
    expect(await db.value('select count(*)::integer from rowlock.attempt')).toBe(300)
  })
})

test('a reaper in a longer transaction sees sessions that began after it', async () => {
  const reaper = await db.session()
  await reaper.query('begin')
  await reaper.query('select count(*) from pg_stat_activity')
  const job = await taken()
  const session = await db.session()
  const { rows } = await session.query('select pg_backend_pid() as pid')
  await verb(db, 'start', [held(job, { in_transaction: true, session_pid: rows[0].pid })])
  const reply = await reaper.query('select rowlock.reap() as moved')
  await reaper.query('rollback')
  expect(reply.rows[0].moved).toEqual([])
})

describe('after an outage', () => {
  test('a worker that could not beat since before the server started has one more lease', async () => {
    const lost = await taken()
    const start = 'pg_postmaster_start_time()'
    const set = (beat: string, lease: string) =>
      db.sql(
        `update rowlock.worker
            set beat_at = ${beat}, lease = ${lease}, expires_at = clock_timestamp() - interval '1 s'`,
      )
    await set(`${start} - interval '1 s'`, `clock_timestamp() - ${start} + interval '1 hour'`)
    expect(await reap()).toEqual([])
    // Its outcomes still come in; a claim does not.
    await expect(hand.claim()).rejects.toMatchObject({ code: 'RL020' })
    // The lease since the start is over as well.
    await set(`${start} - interval '1 s'`, `interval '1 ms'`)
    expect((await reap()).map(({ id }) => id)).toEqual([lost.id])
  })

  test('one that did beat since has none', async () => {
    const lost = await taken()
    await db.sql(
      `update rowlock.worker set beat_at = pg_postmaster_start_time() + interval '1 ms', lease = interval '1 hour',
              expires_at = clock_timestamp() - interval '1 ms'`,
    )
    expect((await reap()).map(({ id }) => id)).toEqual([lost.id])
  })
})

describe('a request to cancel', () => {
  test('wins over the way back', async () => {
    const lost = await taken()
    expect(await db.value(`select rowlock.cancel($1, 'eve', 'no more')`, [lost.id])).toBe('requested')
    await endLease(db, hand)
    expect(await reap()).toMatchObject([{ id: lost.id, to: 'cancelled' }])
    expect(await job(lost.id)).toMatchObject({ state: 'cancelled', actor: 'eve', reason: 'no more' })
    expect(await db.value('select count(*)::integer from rowlock.cancel_request')).toBe(0)
  })
})

test('a reaper whose backend is killed has changed nothing, and the next one does it', async () => {
  await fill(db, 200)
  await hand.claim()
  await endLease(db, hand)
  const session = await db.session()
  const { rows } = await session.query('select pg_backend_pid() as pid')
  await session.query('begin')
  await session.query('select rowlock.reap()')
  await db.sql('select pg_terminate_backend($1)', [rows[0].pid])
  const moved = await until('the jobs are given back', async () => {
    const back = await reap()
    return back.length > 0 ? back : undefined
  })
  expect(moved).toHaveLength(200)
  expect(await db.value('select count(*)::integer from rowlock.attempt')).toBe(200)
})

test('a job that something in the database refuses keeps no other from its way back', async () => {
  await db.sql(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin
      if new.kind = 'bad' then raise exception 'not this one'; end if;
      return new;
    end $$;
    create trigger refuse before insert on rowlock.waiting for each row execute function public.refuse()`)
  try {
    const { ids } = await enqueueMany(db, [{}, {}, {}])
    await hand.claim()
    await db.sql(`update rowlock.running set kind = 'bad' where id = $1`, [ids[1]])
    await endLease(db, hand)
    expect((await reap()).map(({ id }) => id).sort()).toEqual([ids[0], ids[2]])
    expect(await job(ids[1]!)).toMatchObject({ state: 'running' })
    await db.sql('drop trigger refuse on rowlock.waiting')
    expect((await reap()).map(({ id }) => id)).toEqual([ids[1]])
  } finally {
    await db.sql('drop trigger if exists refuse on rowlock.waiting; drop function public.refuse()')
  }
})
