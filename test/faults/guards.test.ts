// What is seen only where somebody else holds a row, a bound is met, or a flag is up: each of these tests fails when one
// guard is taken out of the SQL (faults/mutants).

import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  endLease,
  enqueue,
  enqueueMany,
  type Hand,
  held,
  type Row,
  register,
  stateOf,
  verb,
} from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let hand: Hand
let other: pg.Client
let impatient: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('guards')
  ;[other, impatient] = [await db.session(), await db.session()]
  await impatient.query(`set lock_timeout = '100ms'`)
})
afterAll(() => db.drop())
const TABLES =
  'waiting running finished dead_letter attempt payload dedupe cancel_request queue worker sleeper audit'
beforeEach(async () => {
  await db.sql(
    TABLES.split(' ')
      .map((table) => `delete from rowlock.${table}`)
      .join(';'),
  )
  hand = await register(db)
})
afterEach(() => other.query('rollback'))

/** Somebody else holds this row. */
async function hold(table: string, column: string, value: string): Promise<void> {
  await other.query('begin')
  await other.query(`select from rowlock.${table} where ${column} = $1 for update`, [value])
}
const call = async (text: string, values: unknown[] = [], through: { query: pg.Pool['query'] } = db.pool) =>
  (await through.query(`select ${text} as reply`, values)).rows[0].reply
const suspect = (id: string, since = "interval '0'") =>
  db.sql(`update rowlock.waiting set losses = 2, available_at = available_at - ${since} where id = $1`, [id])
const claimAll = (kinds = ['k'], session: pg.Client | pg.Pool = db.pool) => hand.claim({ kinds }, session)

describe('a claim', () => {
  test('passes a suspect by that somebody holds at the head of its line', async () => {
    const { ids } = await enqueueMany(db, [{}, {}])
    await suspect(ids[0]!)
    await hold('waiting', 'id', ids[0]!)
    expect((await claimAll(['k'], impatient)).ids).toEqual([ids[1]])
  })

  test('passes a suspect by that somebody holds though it has waited longest', async () => {
    const { ids } = await enqueueMany(db, [{}, {}])
    await suspect(ids[1]!, "interval '1 hour'")
    await hold('waiting', 'id', ids[1]!)
    // One claim in four looks for it first.
    for (let n = 0; n < 40; n++) {
      const { jobs } = await claimAll(['k'], impatient)
      expect(jobs.map(({ id }) => id)).toEqual([ids[0]])
      await verb(
        db,
        'hand_back',
        jobs.map((job) => held(job)),
      )
    }
  })

  test('takes no suspect of a kind that it did not name', async () => {
    const id = await enqueue(db, {}, 'foreign')
    await suspect(id, "interval '1 hour'")
    for (let n = 0; n < 40; n++) expect((await claimAll()).ids).toEqual([])
  })

  test.each(['at the head of its line', 'that waited long'])('runs no expired suspect %s', async (where) => {
    const id = await enqueue(db, { expires_in: '0' })
    await suspect(id, where === 'that waited long' ? "interval '1 hour'" : "interval '0'")
    for (let n = 0; n < 40; n++) expect((await claimAll()).ids).toEqual([])
    expect(await stateOf(db, id)).toBe('queued')
  })

  test('says when the first of all its lines is due', async () => {
    await enqueueMany(db, [
      { priority: 5, delay: '1 hour' },
      { priority: 0, delay: '1 minute' },
      { priority: -5, delay: '2 hours' },
    ])
    const { next_due, now } = await claimAll()
    expect(next_due! - now).toBeGreaterThan(0)
    expect(next_due! - now).toBeLessThanOrEqual(60_000)
  })

  test('lowers the flag of a queue that yields, and keeps the others up', async () => {
    await call(`rowlock.sleep($1, array['default', 'empty'], now() + interval '1 hour')`, [hand.id])
    await enqueue(db)
    const wants = ['default', 'empty'].map((queue) => ({ queue, limit: 1, kinds: ['k'] }))
    await call(`rowlock.claim($1, $2, now() + interval '2 hours')`, [hand.id, JSON.stringify(wants)])
    expect(await db.sql('select queue from rowlock.sleeper')).toEqual([{ queue: 'empty' }])
  })

  test('of a suspect says which queue yielded, and lowers its flag', async () => {
    await suspect(await enqueue(db))
    await call(`rowlock.sleep($1, array['default'], now() + interval '1 hour')`, [hand.id])
    const wants = JSON.stringify([{ queue: 'default', limit: 5, kinds: ['k'] }])
    const reply = await call(`rowlock.claim($1, $2, now() + interval '2 hours')`, [hand.id, wants])
    expect(reply).toMatchObject({ alone: true, found: { default: 1 } })
    expect(await db.sql('select from rowlock.sleeper')).toEqual([])
  })

  test('keeps a large input out of the rows that move', async () => {
    const id = await enqueue(db)
    const [large] = (await enqueueMany(db, [{ input: 'x'.repeat(5_000) }])).ids
    const inputs = await db.sql('select id::text, input is null as away from rowlock.waiting order by id')
    expect(inputs).toEqual([
      { id, away: false },
      { id: large, away: true },
    ])
  })
})

describe('expire', () => {
  test('passes by what somebody holds, and stops at its limit', async () => {
    const { ids } = await enqueueMany(db, [{ expires_in: '0' }, { expires_in: '0' }, { expires_in: '0' }])
    await hold('waiting', 'id', ids[0]!)
    expect(await call('rowlock.expire(1)', [], impatient as never)).toHaveLength(1)
    expect(await call('rowlock.expire()', [], impatient as never)).toHaveLength(1)
    expect(await stateOf(db, ids[0]!)).toBe('queued')
  })
})

describe('an end', () => {
  const running = async (options: Record<string, unknown> = {}) => {
    const id = await enqueue(db, options)
    return (await claimAll()).jobs.find((job) => job.id === id)!
  }
  const fail = (job: Row, more: Record<string, unknown> = {}) =>
    verb(db, 'fail', [held(job, { cause: 'Error', ...more })])
  const dueIn = (id: string) =>
    db.value<number>(
      'select extract(epoch from available_at - clock_timestamp())::float from rowlock.waiting where id = $1',
      [id],
    )

  test('by the tenth failure makes a dead letter where nothing else is said', async () => {
    const id = await enqueue(db, { backoff: { type: 'fixed', delay_ms: 0 } })
    for (let n = 1; n <= 10; n++) {
      expect(await stateOf(db, id)).not.toBe('dead_letter')
      await fail((await claimAll()).jobs[0])
    }
    expect(await stateOf(db, id)).toBe('dead_letter')
  })

  test('with a delay below 0 is due at once, and never before now', async () => {
    const job = await running()
    await fail(job, { after_ms: -3_600_000 })
    expect(await dueIn(job.id)).toBeGreaterThan(-60)
  })

  test('with a delay beyond the calendar is due in ten years', async () => {
    const job = await running()
    await verb(db, 'snooze', [held(job, { after_ms: 1e300 })])
    expect(await dueIn(job.id)).toBeLessThan(3651 * 86_400)
  })

  test('by a snooze that says nothing is due at once', async () => {
    const job = await running({ available_at: '2026-01-01T00:00:00Z' })
    await verb(db, 'snooze', [held(job)])
    expect(Math.abs(await dueIn(job.id))).toBeLessThan(60)
  })

  test('waits as its backoff says for just this failure', async () => {
    const job = await running({ backoff: { type: 'list', delays_ms: [60_000, 7_200_000] } })
    await fail(job)
    expect(await dueIn(job.id)).toBeLessThanOrEqual(60)
    await db.sql('update rowlock.waiting set available_at = now()')
    await fail((await claimAll()).jobs[0])
    expect(await dueIn(job.id)).toBeGreaterThan(7_000)
  })

  test('spreads the delays of jobs that failed together', async () => {
    await enqueueMany(
      db,
      Array.from({ length: 10 }, () => ({})),
    )
    const { jobs } = await claimAll()
    await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    await db.sql('update rowlock.waiting set available_at = now()')
    const again = (await claimAll()).jobs
    await verb(
      db,
      'fail',
      again.map((job) => held(job, { cause: 'Error' })),
    )
    const due = await db.value<number>('select count(distinct available_at)::integer from rowlock.waiting')
    expect(due).toBeGreaterThan(5)
  })

  test('in a queue without history keeps the input of a dead letter, and of nothing else', async () => {
    await call(`rowlock.set_queue('default', '{"retention_days": 0}')`)
    const large = { input: 'x'.repeat(5_000) }
    await enqueueMany(db, [large, { ...large, max_attempts: 1 }, large])
    const { jobs } = await claimAll()
    await fail(jobs[0], { permanent: true })
    await fail(jobs[1])
    await verb(db, 'complete', [held(jobs[2]!)])
    expect(await db.sql('select job_id::text as id from rowlock.payload')).toEqual([{ id: jobs[1]!.id }])
  })

  test('keeps a start that is known', async () => {
    const [one, two] = [await running(), await running()]
    await verb(
      db,
      'start',
      [one!, two!].map((job) => held(job)),
    )
    const known = () => db.sql(`select id::text, started_at from rowlock.job order by id`)
    const before = await known()
    await verb(db, 'start', [held(two!, { ago_ms: 0 })])
    await verb(db, 'complete', [held(one!, { ran_ms: 0 })])
    expect(await known()).toEqual(before)
  })
})

describe('an end in a transaction', () => {
  test('is refused to who does not hold', async () => {
    await enqueue(db)
    const [job] = (await claimAll()).jobs
    const text = 'select rowlock.complete_in_transaction($1, $2)'
    expect(await db.refusal(text, [job!.id, job!.claim_id])).toBe('RL020')
    expect(await stateOf(db, job!.id)).toBe('running')
  })
})

describe('what becomes live again', () => {
  test('is durable though the database is set not to', async () => {
    await enqueueMany(db, [{ max_attempts: 1 }, {}])
    const { jobs } = await claimAll()
    await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    await verb(db, 'complete', [held(jobs[1]!)])
    for (const [n, name] of ['redrive', 'retry'].entries()) {
      await other.query('begin')
      await other.query('set local synchronous_commit = off')
      await other.query(`select rowlock.${name}($1)`, [jobs[n]!.id])
      expect((await other.query('show synchronous_commit')).rows[0].synchronous_commit).toBe('on')
      await other.query('commit')
    }
  })
})

describe('operators', () => {
  test('are told which priorities there are', async () => {
    const id = await enqueue(db)
    for (const priority of [-11, 11]) {
      expect(await db.refusal('select rowlock.prioritize($1, $2)', [id, priority])).toBe('RL001')
    }
    await call('rowlock.prioritize($1, 10)', [id])
  })
})

describe('start', () => {
  test('passes a row by that somebody has locked', async () => {
    const id = await enqueue(db)
    const [job] = (await claimAll()).jobs
    await hold('running', 'id', id)
    expect(await verb(db, 'start', [held(job!)], impatient)).toEqual([])
  })
})

describe('the reaper', () => {
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

describe('a key that is kept until an instant', () => {
  test('outlives the end of its job', async () => {
    const id = await enqueue(db, { dedupe_key: 'a' })
    await db.sql(`update rowlock.dedupe set until = now() + interval '1 hour'`)
    await verb(db, 'complete', [held((await claimAll()).jobs[0]!)])
    expect(await db.sql('select job_id::text as id from rowlock.dedupe')).toEqual([{ id }])
  })
})

describe('a notice', () => {
  const notices: string[] = []
  beforeAll(async () => {
    const listener = await db.session()
    listener.on('notification', ({ payload }) => void notices.push(payload!))
    await listener.query(`do $$ begin execute format('listen %I', rowlock.channel()); end $$`)
  })
  /** The notices of queues that came since, up to one of our own. */
  const heard = async () => {
    await call(`pg_notify(rowlock.channel(), 'over')`)
    await until('the last notice has come', () => notices.includes('over'))
    return notices.splice(0).filter((one) => one.startsWith('queue '))
  }
  const sleepFor = (length: string, worker = hand.id) =>
    call(`rowlock.sleep($1, array['default'], now() + $2::interval)`, [worker, length])

  test('comes of an enqueue, and of what is put back, where somebody sleeps beyond it', async () => {
    const id = await enqueue(db)
    expect(await heard()).toEqual([])
    const [job] = (await claimAll()).jobs
    await sleepFor('1 minute')
    await enqueue(db)
    expect(await heard()).toEqual(['queue default'])
    await enqueue(db, { delay: '1 hour' })
    expect(await heard()).toEqual([])
    await verb(db, 'snooze', [held(job!, { after_ms: 5 })])
    expect(await heard()).toEqual(['queue default'])
    expect(await stateOf(db, id)).toBe('queued')
  })

  test('comes of a resume, a redrive, a retry and a job that is to run now', async () => {
    await enqueueMany(db, [{ max_attempts: 1 }, {}])
    const { jobs } = await claimAll()
    await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    await verb(db, 'complete', [held(jobs[1]!)])
    const later = await enqueue(db, { delay: '2 hours' })
    await call(`rowlock.pause('default')`)
    await sleepFor('1 hour')
    await heard()
    const acts: [string, unknown[]][] = [
      [`rowlock.resume('default')`, []],
      ['rowlock.redrive($1)', [jobs[0]!.id]],
      ['rowlock.retry($1)', [jobs[1]!.id]],
      ['rowlock.run_now($1)', [later]],
    ]
    for (const [text, values] of acts) {
      await call(text, values)
      expect([text, await heard()]).toEqual([text, ['queue default']])
    }
  })

  test('is not sent for one of two queues whose sleeper wakes up before the job is due', async () => {
    await sleepFor('1 hour')
    await call(`rowlock.sleep($1, array['soon'], now() + interval '1 s')`, [hand.id])
    await enqueueMany(db, [{ delay: '1 minute' }, { delay: '1 minute', queue: 'soon' }])
    expect(await heard()).toEqual(['queue default'])
  })

  test('is not sent to a worker whose lease is over', async () => {
    await sleepFor('1 hour')
    await endLease(db, hand)
    await enqueue(db)
    expect(await heard()).toEqual([])
  })

  test('goes to everybody from a stricter isolation, which sees no flag raised since', async () => {
    await other.query('begin isolation level repeatable read')
    await other.query('select 1')
    await enqueueMany(db, [{}], other)
    await other.query('commit')
    expect(await heard()).toEqual(['queue default'])
  })
})
