// The reaper, the sweep and the worker's own row: what each passes by, where it stops, and what it tidies
// (faults/mutants takes the guards out).

import { describe, expect, test } from 'vitest'
import {
  endLease,
  enqueue,
  enqueueMany,
  type Hand,
  held,
  register,
  stateOf,
  untilBlocked,
  verb,
} from '../engine/by-hand.ts'
import { call, claimAll, db, hand, impatient, other, prepare } from './beside.ts'

prepare()

describe('the reaper', () => {
  test('does nothing while another is at work, though there is more to do', async () => {
    await enqueueMany(db, [{}, {}])
    await claimAll()
    // Of a worker that is there its row alone would keep the second one out.
    await db.sql('delete from rowlock.worker')
    await other.query('begin')
    expect((await other.query('select rowlock.reap(1) as moved')).rows[0].moved).toHaveLength(1)
    expect(await call('rowlock.reap(1)', [], impatient as never)).toEqual([])
    await other.query('commit')
    expect(await call('rowlock.reap(1)')).toHaveLength(1)
  })

  test('stops at its limit', async () => {
    await enqueueMany(db, [{}, {}, {}])
    await claimAll()
    await endLease(db, hand)
    expect(await call('rowlock.reap(2)')).toHaveLength(2)
    expect(await call('rowlock.reap(2)')).toHaveLength(1)
  })
})

describe('a worker', () => {
  test('that retires lengthens no lease, and takes its flags along', async () => {
    await enqueue(db)
    await claimAll()
    await endLease(db, hand)
    await call(`rowlock.sleep($1, array['default'], now() + interval '1 hour')`, [hand.id])
    const before = await db.sql('select expires_at from rowlock.worker')
    expect(await call('rowlock.retire($1)', [hand.id])).toBe(false)
    expect(await db.sql('select expires_at from rowlock.worker')).toEqual(before)
    expect(await db.sql('select from rowlock.sleeper')).toEqual([])
  })

  test('that is the eldest is on duty; an elder whose lease is over is not waited for', async () => {
    const duty = async (one: Hand) => (await call('rowlock.heartbeat($1)', [one.id])).duty_in_ms
    const younger = await register(db)
    expect(await duty(hand)).toBe(0)
    expect(await duty(younger)).toBeGreaterThan(0)
    await endLease(db, hand)
    expect(await duty(younger)).toBe(0)
  })
})

describe('the sweep', () => {
  test('passes waiting jobs, dead letters and keys by that somebody holds', async () => {
    const { ids } = await enqueueMany(db, [{}, { max_attempts: 1, kind: 'dead' }])
    const [dead] = (await claimAll(['dead'])).jobs
    await verb(db, 'fail', [held(dead!, { cause: 'Error' })])
    await db.sql(
      'insert into rowlock.cancel_request (job_id, requested_at) select id, now() from rowlock.job',
    )
    await db.sql(`insert into rowlock.dedupe values ('default', 'kept', 1, now() - interval '1 s')`)
    await other.query('begin')
    for (const table of ['waiting', 'dead_letter', 'dedupe']) {
      await other.query(`select from rowlock.${table} for update`)
    }
    expect(await call('rowlock.sweep()', [], impatient as never)).toMatchObject({ cancelled: 0, keys: 0 })
    await other.query('rollback')
    expect(await call('rowlock.sweep()')).toMatchObject({ cancelled: 2, keys: 1 })
    for (const id of ids) expect(await stateOf(db, id)).toBe('cancelled')
  })

  test('leaves the request for a job that was claimed while it was at work', async () => {
    const { ids } = await enqueueMany(db, [{ dedupe_key: 'a' }, {}])
    await db.sql(
      'insert into rowlock.cancel_request (job_id, requested_at) select id, now() from rowlock.job',
    )
    await other.query('begin')
    await other.query('select from rowlock.dedupe for update')
    const swept = call('rowlock.sweep()')
    // It has seen both requests, and waits with the first.
    await untilBlocked(db)
    expect((await hand.claim()).ids).toEqual([ids[1]])
    await other.query('rollback')
    await swept
    expect(await db.sql('select job_id::text as id from rowlock.cancel_request')).toEqual([{ id: ids[1] }])
  })

  test('frees kept keys that are due, and no others', async () => {
    await db.sql(
      `insert into rowlock.dedupe values ('default', 'due', 1, now() - interval '1 s'),
         ('default', 'kept', 1, now() + interval '1 hour'), ('default', 'live', 1, null)`,
    )
    await call('rowlock.sweep()')
    expect(await db.sql('select key from rowlock.dedupe order by key')).toEqual([
      { key: 'kept' },
      { key: 'live' },
    ])
  })

  test('lowers the flags of workers that are gone, and drops old records', async () => {
    await call(`rowlock.sleep(gen_random_uuid(), array['default'], now() + interval '1 hour')`)
    await call(`rowlock.sleep($1, array['default'], now() + interval '1 hour')`, [hand.id])
    await db.sql(
      `insert into rowlock.audit (at, verb) values (now() - interval '91 days', 'pause'), (now(), 'pause')`,
    )
    expect(await call('rowlock.sweep()')).toMatchObject({ flags: 1, audit: 1 })
  })
})
