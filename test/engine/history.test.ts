// Days of history: made ahead, made when one is missing, due when their class is over, and never in anybody's way.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RETENTION_CLASSES_DAYS } from '../../src/ground/limits.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, type Hand, held, refusal, register, stateOf, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
/** By so much the clock of this file is behind: it began at noon of the day that the template was made on. */
let behindMs = 0
let clock = 'pg_catalog.clock_timestamp()'
beforeAll(async () => {
  db = await rowlockDatabase('history')
  const [, ...day] = /(\d{4})(\d\d)(\d\d)$/.exec((await days('finished'))[0]!)!.map(Number)
  behindMs = Date.now() - Date.UTC(day[0]!, day[1]! - 1, day[2], 12)
  clock = `pg_catalog.clock_timestamp() - interval '${behindMs} ms'`
  await setClock(clock)
  hand = await register(db, '1000 days')
})
afterAll(() => db.drop())
afterEach(() => setClock(clock))

/** The one clock, as an SQL expression. */
const setClock = (sql: string) =>
  db.sql(
    `create or replace function rowlock.now() returns timestamptz language sql volatile as $$ select ${sql} $$`,
  )
const days = (parent: string) =>
  db
    .sql(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
      [`rowlock.${parent}`],
    )
    .then((rows) => rows.map(({ name }) => name.replace('rowlock.', '')))
const today = (plus = 0) => {
  const day = new Date(Date.now() - behindMs + plus * 86_400_000).toISOString().slice(0, 10)
  return day.replaceAll('-', '')
}
const dropToday = async () => {
  for (const name of [...(await days('finished')), ...(await days('attempt'))]) {
    if (name.endsWith(today())) await db.sql(`drop table rowlock.${name}`)
  }
}
async function claimed(queue = 'default', options: Record<string, unknown> = {}) {
  await enqueue(db, { queue, ...options })
  return (await hand.claim({ queue, limit: 1 })).jobs[0]!
}

describe('days', () => {
  test('are made today and 14 ahead, by the migration and by whoever asks, once', async () => {
    for (const parent of ['finished', 'attempt']) {
      expect(await days(parent)).toEqual(Array.from({ length: 15 }, (_, n) => `${parent}_7_${today(n)}`))
    }
    expect(await db.value('select rowlock.make_days()')).toBe(0)
  })

  test('are made once, though many ask at once', async () => {
    const made = await Promise.all(
      Array.from({ length: 8 }, () => db.value<number>(`select rowlock.make_days('2031-05-01Z', 3)`)),
    )
    expect(made.reduce((sum, n) => sum + n)).toBe(6)
    expect((await days('finished')).filter((name) => name.includes('203105'))).toHaveLength(3)
  })

  test('are of UTC, whatever the time zone of a session', async () => {
    const session = await db.session()
    await session.query(`set timezone = 'Pacific/Kiritimati'`)
    await session.query(`select rowlock.make_days('2031-06-01 23:00:00Z', 1)`)
    expect(await days('finished')).toContain('finished_7_20310601')
    const bounds = await db.value(
      `select pg_get_expr(relpartbound, oid) from pg_class where relname = 'finished_7_20310601'`,
    )
    expect(bounds).toContain('2031-06-01 00:00:00')
  })

  test('of each class in use are made as soon as a queue has it', async () => {
    await db.sql(`select rowlock.set_queue('long', '{"retention_days":90}')`)
    expect((await days('finished')).filter((name) => name.includes('_90_'))).toHaveLength(15)
    expect((await days('attempt')).filter((name) => name.includes('_90_'))).toHaveLength(15)
    await db.sql(`select rowlock.set_queue('brief', '{"retention_days":0}')`)
    expect((await days('finished')).filter((name) => name.includes('_0_') || name.includes('_1_'))).toEqual(
      [],
    )
    expect((await days('attempt')).filter((name) => name.includes('_1_'))).toHaveLength(15)
  })
})

describe('a missing day', () => {
  test('is made by finish itself, and nothing of the batch is lost or doubled', async () => {
    const [well, badly, away] = [await claimed(), await claimed(), await claimed()]
    await dropToday()
    const reply = await db.value('select rowlock.finish($1)', [
      { complete: [held(well)], fail: [held(badly, { cause: 'Error' })], hand_back: [held(away)] },
    ])
    expect(reply.completed).toEqual([well.id])
    expect(reply.moved).toHaveLength(2)
    expect(await stateOf(db, well.id)).toBe('done')
    expect(await db.value('select count(*)::integer from rowlock.attempt')).toBe(2)
    await db.sql('truncate rowlock.waiting')
  })

  test('is made when the clock stands far ahead', async () => {
    const job = await claimed()
    await setClock(`${clock} + interval '400 days'`)
    expect((await db.value('select rowlock.finish($1)', [{ complete: [held(job)] }])).completed).toEqual([
      job.id,
    ])
    expect(await days('finished')).toContain(`finished_7_${today(400)}`)
  })

  test.each([7, 1, 30])('of class %i is made by every other verb that writes history', async (days) => {
    const queue = `class${days}`
    await db.sql('select rowlock.set_queue($1, $2)', [queue, { retention_days: days }])
    const settings = { max_attempts: 1 }

    const inTransaction = await claimed(queue)
    await dropToday()
    await db.sql('select rowlock.hold($1, $2), rowlock.complete_in_transaction($1, $2)', [
      inTransaction.id,
      inTransaction.claim_id,
    ])

    const waiting = await enqueue(db, { queue })
    await dropToday()
    await db.sql('select rowlock.cancel($1)', [waiting])

    const late = await enqueue(db, { queue, expires_in: '0 s' })
    await dropToday()
    expect(await db.value('select rowlock.expire()')).toEqual([late])

    const dead = await claimed(queue, settings)
    await db.value('select rowlock.finish($1)', [{ fail: [held(dead, { cause: 'Error' })] }])
    await dropToday()
    await db.sql('select rowlock.discard($1)', [dead.id])

    const lost = await claimed(queue)
    await db.sql(`update rowlock.running set worker_id = gen_random_uuid() where id = $1`, [lost.id])
    await dropToday()
    expect(await db.value('select rowlock.reap()')).toMatchObject([{ id: lost.id }])
    await db.sql('truncate rowlock.waiting')
  })

  test('is made beside an open completion: neither waits for the other', async () => {
    const [open, other] = [await claimed(), await claimed()]
    const session = await db.session()
    await session.query('begin')
    await session.query('select rowlock.hold($1, $2), rowlock.complete_in_transaction($1, $2)', [
      open.id,
      open.claim_id,
    ])
    const maker = await db.session()
    await maker.query(`set lock_timeout = '1s'; begin`)
    const { rows } = await maker.query(`select rowlock.make_days('2032-01-01Z', 2) as made`)
    expect(rows[0].made).toBeGreaterThanOrEqual(4)
    // Others go on while the days are not committed.
    const third = await db.session()
    await third.query(`set lock_timeout = '1s'`)
    expect(await verb(db, 'complete', [held(other)], third)).toEqual([other.id])
    await maker.query('commit')
    await session.query('commit')
    expect(await stateOf(db, open.id)).toBe('done')
  })
})

describe('days that are due', () => {
  test('are those whose last moment is older than their class, and no others', async () => {
    await setClock(`timestamptz '2040-03-10 00:00:00Z'`)
    await db.sql(`select rowlock.make_days('2040-02-28Z', 15)`)
    const due = async () =>
      (await db.sql(`select day from rowlock.days_due(9999) where day like 'finished_7_2040%'`)).map(
        ({ day }) => day,
      )
    expect(await due()).toEqual([
      'finished_7_20400228',
      'finished_7_20400229',
      'finished_7_20400301',
      'finished_7_20400302',
    ])
    await setClock(`timestamptz '2040-03-09 23:59:59.999999Z'`)
    expect(await due()).toHaveLength(3)
    const [row] = await db.sql(`select * from rowlock.days_due(9999) where day = 'finished_7_20400228'`)
    expect(row).toEqual({ parent: 'finished', day: 'finished_7_20400228', detached: false })
    // One that was detached and not dropped is still due.
    await db.sql('alter table rowlock.finished detach partition rowlock.finished_7_20400228')
    const [left] = await db.sql(`select * from rowlock.days_due(9999) where day = 'finished_7_20400228'`)
    expect(left.detached).toBe(true)
    expect(await db.sql('select from rowlock.days_due(2)')).toHaveLength(2)
  })

  test('of a longer class are kept as long as it says', async () => {
    await setClock(`timestamptz '2040-03-10 00:00:00Z'`)
    const due = await db.sql('select day from rowlock.days_due(9999)')
    const kept = new Set(['finished_90', 'attempt_90'].map((stem) => `${stem}_${today()}`))
    expect(due.filter(({ day }) => kept.has(day))).toHaveLength(2)
    await setClock(clock)
    expect(await db.sql('select day from rowlock.days_due(9999)')).toEqual([])
  })
})

describe('a retention class', () => {
  const large = 'x'.repeat(9000)

  test('0 keeps no row and no input of an ended job, but the attempts that failed', async () => {
    const { ids } = await enqueueMany(
      db,
      Array.from({ length: 5 }, () => ({
        queue: 'brief',
        input: large,
        backoff: { type: 'fixed', delay_ms: 0 },
      })),
    )
    const ends = (await hand.claim({ queue: 'brief' })).jobs
    await db.value('select rowlock.finish($1)', [
      {
        complete: [held(ends[0]!)],
        fail: [held(ends[1]!, { cause: 'Error', permanent: true }), held(ends[2]!, { cause: 'Error' })],
        abandon: [held(ends[3]!)],
      },
    ])
    await db.sql('select rowlock.hold($1, $2), rowlock.complete_in_transaction($1, $2)', [
      ends[4]!.id,
      ends[4]!.claim_id,
    ])
    const left = await db.sql('select id, state from rowlock.job where id = any ($1)', [ids])
    expect(left).toEqual([{ id: ends[2]!.id, state: 'retryable' }])
    expect(await db.sql('select job_id as id from rowlock.payload where job_id = any ($1)', [ids])).toEqual([
      { id: ends[2]!.id },
    ])
    const attempts = await db.sql(
      'select job_id as id, retention_days from rowlock.attempt where job_id = any ($1) order by 1',
      [ids],
    )
    expect(attempts).toEqual([1, 2, 3].map((n) => ({ id: ends[n]!.id, retention_days: 1 })))
    expect(await db.value('select rowlock.cancel($1)', [ends[2]!.id])).toBe('cancelled')
    expect(
      await db.value('select count(*)::integer from rowlock.payload where job_id = any ($1)', [ids]),
    ).toBe(0)
  })

  test('0: a dead letter is kept, since it waits for a person, until it is discarded', async () => {
    await enqueueMany(db, [{ queue: 'brief', input: large, max_attempts: 1 }])
    const [job] = (await hand.claim({ queue: 'brief' })).jobs
    await verb(db, 'fail', [held(job!, { cause: 'Error' })])
    expect(await db.value('select input from rowlock.job where id = $1', [job!.id])).toBe(large)
    await db.sql('select rowlock.discard($1)', [job!.id])
    expect(await db.refusal('select rowlock.state_of($1)', [job!.id])).toBe('RL010')
    expect(await db.sql('select from rowlock.payload where job_id = $1', [job!.id])).toEqual([])
  })

  test('holds for the jobs that end from now on', async () => {
    const before = await claimed('moving')
    await verb(db, 'complete', [held(before)])
    await db.sql(`select rowlock.set_queue('moving', '{"retention_days":30}')`)
    const after = await claimed('moving')
    await verb(db, 'complete', [held(after)])
    const rows = await db.sql(
      'select tableoid::regclass::text as day, input from rowlock.finished where id = any ($1) order by id',
      [[before.id, after.id]],
    )
    expect(rows.map(({ day }) => day.replace('rowlock.', ''))).toEqual([
      `finished_7_${today()}`,
      `finished_30_${today()}`,
    ])
  })
})

describe('set_queue', () => {
  test.each(RETENTION_CLASSES_DAYS)('takes %i days', async (days) => {
    await db.sql('select rowlock.set_queue($1, $2)', [
      'classes',
      { retention_days: days, target_wait: '30 s' },
    ])
    const [row] = await db.sql(
      `select retention_days, extract(epoch from target_wait)::integer as wait
         from rowlock.queue where name = 'classes'`,
    )
    expect(row).toEqual({ retention_days: days, wait: 30 })
  })

  // The search names the classes one by one, so that days can be pruned: it must not forget one.
  test.each(RETENTION_CLASSES_DAYS.filter((days) => days > 0))(
    'lists find what %i days keep',
    async (days) => {
      const queue = `kept${days}`
      await db.sql('select rowlock.set_queue($1, $2)', [queue, { retention_days: days }])
      const id = await enqueue(db, { queue })
      await db.sql('select rowlock.cancel($1)', [id])
      for (const filter of [{ queue }, { queue, state: 'cancelled' }]) {
        const page = await db.value('select rowlock.jobs_page($1, 10, null)', [filter])
        expect(page.jobs.map((job: { id: string }) => job.id)).toEqual([id])
      }
      expect(await db.value('select rowlock.count_jobs($1)', [{ queue }])).toMatchObject({ count: 1 })
    },
  )

  test.each([
    ['a class that is none', 'q', { retention_days: 5 }],
    ['a negative class', 'q', { retention_days: -1 }],
    ['a class beyond smallint', 'q', { retention_days: 70000 }],
    ['a class of text', 'q', { retention_days: 'long' }],
    ['a negative wait', 'q', { target_wait: '-1 s' }],
    ['a wait beyond 30 days', 'q', { target_wait: '31 days' }],
    ['a wait that is none', 'q', { target_wait: 'soon' }],
    ['an unknown setting', 'q', { retention: 7 }],
    ['no object', 'q', []],
    ['no settings', 'q', null],
    ['an empty name', '', {}],
    ['a long name', 'x'.repeat(101), {}],
    ['no name', null, {}],
  ])('refuses %s', async (_, queue, settings) => {
    const before = await db.sql('select * from rowlock.queue order by name')
    const refused = await refusal(
      db.sql('select rowlock.set_queue($1, $2)', [
        queue,
        settings === null ? null : JSON.stringify(settings),
      ]),
    )
    expect(refused.code).toBe('RL001')
    expect(await db.sql('select * from rowlock.queue order by name')).toEqual(before)
  })

  test('names the setting that was meant', async () => {
    const refused = await refusal(db.sql(`select rowlock.set_queue('q', '{"retention_day":7}')`))
    expect(refused.message).toContain('did you mean retention_days?')
  })

  test('pause refuses a name that no queue can have', async () => {
    for (const name of ['', 'x'.repeat(101), null]) {
      expect(await db.refusal('select rowlock.pause($1)', [name])).toBe('RL001')
    }
  })
})

test('a day that is not due keeps its jobs and their inputs, whoever asks to drop it', async () => {
  const id = (
    await db.value(`select rowlock.enqueue_many($1)`, [
      JSON.stringify([{ kind: 'k', queue: 'young', input: 'x'.repeat(9_000) }]),
    ])
  ).ids[0]
  await db.sql('select rowlock.cancel($1)', [id])
  const before = await days('finished')
  const day = await db.value<string>(
    `select relname from pg_class where oid = (select tableoid from rowlock.finished where id = $1)`,
    [id],
  )
  for (const name of [day, 'payload', 'finished', 'finished_7_19990101']) {
    expect(await db.value('select rowlock.drop_day($1)', [name])).toBeNull()
  }
  expect(await days('finished')).toEqual(before)
  expect(await db.value('select input from rowlock.job where id = $1', [id])).toBe('x'.repeat(9_000))
})
