// Why a job waits whose row somebody has, and that asking disturbs nobody.

import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { enqueue } from './by-hand.ts'
import { codes, db, first, open, pidOf, rowlock, serve, setUp, why } from './why-rig.ts'

setUp('why_locked')

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

test('a number that a transaction elsewhere has as well makes no holder of it', async () => {
  const holder = await open('select from rowlock.waiting for update')
  const elsewhere = await open('select pg_current_xact_id(); select from rowlock.waiting')
  const holders = async (session: pg.Client) => {
    const { rows } = await session.query('select pg_current_xact_id()::xid as xid')
    const look = `select h.pid from rowlock.row_holders($1, 'rowlock.waiting'::regclass) as h`
    return (await db.sql(look, [rows[0].xid])).map(({ pid }) => pid)
  }
  // It has only read the table, as anybody may, and holds locks on others.
  expect(await holders(elsewhere)).toEqual([])
  await elsewhere.query('lock rowlock.running in row share mode')
  expect(await holders(elsewhere)).toEqual([])
  expect(await holders(holder)).toEqual([await pidOf(holder)])
})

test('what a session says is told to members of its role, and to whom PostgreSQL shows all', async () => {
  await serve()
  const id = await enqueue(db)
  const role = `why_asks_${process.pid}`
  const asks = await db.session()
  try {
    await db.sql(`create role ${role}; grant usage on schema rowlock to ${role}`)
    await db.sql(`grant execute on function rowlock.why(bigint) to ${role}`)
    const holder = await open('select from rowlock.waiting for update')
    await asks.query(`set session authorization ${role}`)
    const ask = async () => (await asks.query('select says, detail from rowlock.why($1)', [id])).rows[0]
    const hidden = await ask()
    expect(hidden.detail).toMatchObject({ pid: await pidOf(holder), state: 'idle in transaction' })
    expect(hidden.detail).not.toHaveProperty('query')
    expect(hidden.says).not.toContain('last statement')
    await db.sql(`grant pg_read_all_stats to ${role}`)
    // The last statement of the holder is the one that asked for its pid.
    expect((await ask()).detail).toMatchObject({ query: 'select pg_backend_pid() as pid' })
    await db.sql(`revoke pg_read_all_stats from ${role}`)
    expect((await ask()).detail).not.toHaveProperty('query')
    const [{ name }] = await db.sql('select quote_ident(session_user) as name')
    await db.sql(`grant ${name} to ${role}`)
    expect((await ask()).detail).toHaveProperty('query')
  } finally {
    await asks.query('reset session authorization')
    await db.sql(`drop owned by ${role}; drop role ${role}`)
  }
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
