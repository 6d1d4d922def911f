// The transaction of a handler before the reaper: passed by while its session lives, given back when that is gone.

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import {
  endLease,
  enqueue,
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
  db = await rowlockDatabase('reap_session')
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
const why = () => db.value<string>(`select error ->> 'message' from rowlock.attempt`)
const workers = () => db.value<number>('select count(*)::integer from rowlock.worker')

/** A session of another database of the server. */
async function stranger() {
  const url = new URL(db.direct)
  url.pathname = '/postgres'
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return { client, pid: rows[0].pid as number }
}

async function taken(options: Record<string, unknown> = {}) {
  await enqueue(db, options)
  return (await hand.claim()).jobs[0]!
}

describe('a handler’s transaction', () => {
  async function holding() {
    const job = await taken()
    const session = await db.session()
    const { rows } = await session.query('select pg_backend_pid() as pid')
    await session.query('begin')
    await session.query('select rowlock.hold($1, $2)', [job.id, job.claim_id])
    const mark = { in_transaction: true, session_pid: rows[0].pid }
    expect(await verb(db, 'start', [held(job, mark)])).toEqual([job.id])
    return { job, session, pid: rows[0].pid as number }
  }

  test('that lives is passed by, though the lease of its worker be over', async () => {
    const { job, session } = await holding()
    expect(await reap()).toEqual([])
    await endLease(db, hand)
    expect(await reap()).toEqual([])
    await session.query('select rowlock.complete_in_transaction($1, $2)', [job.id, job.claim_id])
    expect(await reap()).toEqual([])
    await session.query('commit')
    expect(await stateOf(db, job.id)).toBe('done')
    expect(await reap()).toEqual([])
  })

  test('whose session is killed is given back at once, though the lease lives', async () => {
    const { job, pid } = await holding()
    await db.sql('select pg_terminate_backend($1)', [pid])
    const moved = await until('the job is given back', async () => {
      const back = await reap()
      return back.length > 0 ? back : undefined
    })
    expect(moved).toMatchObject([{ id: job.id, to: 'retryable' }])
    expect(await why()).toBe("the session of the handler's transaction is gone")
    expect(await workers()).toBe(1)
  })

  test('in which a statement failed keeps its job while its session and its lease live', async () => {
    const { job, session, pid } = await holding()
    await expect(session.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
    // The error is told before the locks are gone; the next statement comes after that.
    await expect(session.query('select 1')).rejects.toMatchObject({ code: '25P02' })
    expect(await reap()).toEqual([])
    await verb(db, 'start', [held(job)])
    expect(await reap()).toEqual([])
    // The number by itself proves nothing: nobody's, or that of a process which serves no session of this database.
    const foreign = `select pid from pg_stat_activity where datname is null limit 1`
    const elsewhere = await stranger()
    for (const other of [null, await db.value<number>(foreign), elsewhere.pid]) {
      await db.sql('update rowlock.running set session_pid = $1', [other])
      expect(await reap()).toMatchObject([{ id: job.id }])
      await db.sql(`update rowlock.waiting set available_at = now() - interval '1 minute', losses = 0`)
      const again = (await hand.claim()).jobs[0]!
      await verb(db, 'start', [held(again, { in_transaction: true, session_pid: pid })])
      expect(await reap()).toEqual([])
    }
    await elsewhere.client.end()
    await db.sql('truncate rowlock.attempt')
    await endLease(db, hand)
    expect(await reap()).toMatchObject([{ id: job.id }])
    expect(await why()).toBe('the lease of the worker ran out')
    await session.query('rollback')
  })

  test('in which a statement failed inside a savepoint keeps its lock, and goes on to commit', async () => {
    const { job, session } = await holding()
    await session.query('savepoint s')
    await expect(session.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
    expect(await reap()).toEqual([])
    // Then the lock alone speaks for it.
    await endLease(db, hand)
    expect(await reap()).toEqual([])
    await session.query('rollback to s')
    expect(await reap()).toEqual([])
    await session.query('select rowlock.complete_in_transaction($1, $2)', [job.id, job.claim_id])
    await session.query('commit')
    expect(await stateOf(db, job.id)).toBe('done')
  })

  test('that is no longer marked has no session', async () => {
    const { job, session } = await holding()
    await verb(db, 'start', [held(job, { in_transaction: false })])
    expect(await db.value('select session_pid from rowlock.running')).toBeNull()
    await session.query('rollback')
  })

  test('lets the heartbeat write beside it', async () => {
    const { job, session } = await holding()
    expect(
      await db.value('select rowlock.heartbeat($1, $2)', [hand.id, JSON.stringify([held(job)])]),
    ).not.toBeNull()
    await session.query('rollback')
  })

  test('that begins after the job was given back is refused', async () => {
    const { job, session } = await holding()
    await session.query('rollback')
    await endLease(db, hand)
    expect(await reap()).toMatchObject([{ id: job.id }])
    await session.query('begin')
    await expect(session.query('select rowlock.hold($1, $2)', [job.id, job.claim_id])).rejects.toMatchObject({
      code: 'RL020',
    })
    await session.query('rollback')
  })

  test('that completes while a reaper has the row waits for it, and is refused', async () => {
    const job = await taken()
    await endLease(db, hand)
    const reaper = await db.session()
    await reaper.query('begin')
    await reaper.query('select rowlock.reap()')
    const claimed = `set_config('rowlock_held.claim', $2::text, true)`
    const text = `select ${claimed}, rowlock.complete_in_transaction($1, $2::text::uuid)`
    const late = db.sql(text, [job.id, job.claim_id])
    const refused = expect(late).rejects.toMatchObject({ code: 'RL020' })
    await untilBlocked(db)
    await reaper.query('commit')
    await refused
    expect(await stateOf(db, job.id)).toBe('queued')
  })
})
