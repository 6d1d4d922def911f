// A limit on running jobs holds over all workers, whoever comes, goes or dies, and while it is changed. Workers are
// played by hand; what they were given is judged by the history.

import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import { endLease, fill, type Hand, held, type Reply, type Row, register, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('max_running')
  hand = await register(db)
})
afterEach(async () => {
  // A transaction that a failed test left open would hold up the next one.
  await Promise.all(opened.splice(0).map((session) => session.end()))
  await db.sql(
    'truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.queue, rowlock.throttle, rowlock.sleeper',
  )
})
afterAll(() => db.drop())

const opened: pg.Client[] = []
async function open(): Promise<pg.Client> {
  const session = await db.session()
  opened.push(session)
  return session
}
const set = (queue: string, settings: Row, through: { query: pg.Pool['query'] } = db.pool) =>
  through.query('select rowlock.set_queue($1, $2)', [queue, JSON.stringify(settings)])
const running = (queue = 'default') =>
  db.value<number>('select count(*)::integer from rowlock.running where queue = $1', [queue])
const throttle = async (queue = 'default') =>
  (await db.sql('select * from rowlock.throttle where queue = $1', [queue]))[0]!
const finish = (reply: Reply, n = reply.jobs.length) =>
  verb(
    db,
    'complete',
    reply.jobs.slice(0, n).map((job) => held(job)),
  )

/** A claim that did not meet another one, which would send it away for some milliseconds. */
async function claim(want: Row = {}, by = hand): Promise<Reply> {
  let reply: Reply | undefined
  await until('no other claim has the queue', async () => {
    reply = await by.claim(want)
    // Whoever is sent away is to come back in milliseconds, however slow the claim was; for a place, in a second.
    return reply.jobs.length > 0 || reply.next_due === null || reply.next_due - reply.now >= 1_000
  })
  return reply!
}

/** The most jobs that were claimed and not finished at the same time, by what the database wrote down. */
const mostAtOnce = (queue = 'default') =>
  db.value<number>(
    `with turns as (
       select claimed_at as at, 1 as n from rowlock.finished where queue = $1
        union all
       select finished_at, -1 from rowlock.finished where queue = $1)
     select coalesce(max(r.running), 0)::integer
       from (select sum(n) over (order by at, n desc) as running from turns) as r`,
    [queue],
  )

describe('a limit on running jobs', () => {
  test('is met exactly, and what ends makes room', async () => {
    await set('default', { max_running: 3 })
    await fill(db, 10)
    const first = await claim({ limit: 2 })
    const second = await claim({ limit: 10 })
    expect([first.ids.length, second.ids.length]).toEqual([2, 1])
    expect([first, second].map((reply) => (reply as Row).full)).toEqual([false, true])
    expect((await claim()).ids).toEqual([])
    await finish(first)
    expect((await claim()).ids).toHaveLength(2)
    expect(await running()).toBe(3)
  })

  test('holds for each queue of a claim by itself', async () => {
    await set('a', { max_running: 1 })
    await set('b', { max_running: 2 })
    for (const queue of ['a', 'b', 'c']) await fill(db, 5, { queue: `'${queue}'` })
    const wants = ['a', 'b', 'c', 'a'].map((queue) => ({ queue, limit: 4 }))
    const { found, full } = (await hand.claim(wants)) as Row
    expect([found, full]).toEqual([{ a: 1, b: 2, c: 4 }, false])
    expect((await hand.claim(wants)).found).toEqual({ c: 1 })
  })

  test.each([1, 3])(
    'of %d is never exceeded by eight workers that claim and finish at once',
    async (limit) => {
      await set('default', { max_running: limit })
      await fill(db, 200)
      const hands = await Promise.all(Array.from({ length: 8 }, () => register(db)))
      let left = 200
      await Promise.all(
        hands.map(async (one) => {
          while (left > 0) {
            const reply = await one.claim({ limit: 2 })
            left -= reply.jobs.length
            expect(await running()).toBeLessThanOrEqual(limit)
            await finish(reply)
          }
        }),
      )
      expect(await mostAtOnce()).toBe(limit)
    },
  )

  test('counts what a lost worker had until that is given back, and never what was given back twice', async () => {
    await set('default', { max_running: 2 })
    await fill(db, 5)
    const lost = await register(db)
    const had = await claim({}, lost)
    await endLease(db, lost)
    expect((await claim()).ids).toEqual([])
    await db.sql('select rowlock.reap()')
    const again = await claim()
    expect(again.ids).toEqual(had.ids)
    // A false alarm: the first worker goes on and ends what is another's by now.
    expect(await finish(had)).toEqual([])
    expect((await claim()).ids).toEqual([])
    await finish(again)
    expect((await claim()).ids).toHaveLength(2)
  })

  test('counts jobs that ran before it was set', async () => {
    await fill(db, 10)
    const before = await claim({ limit: 4 })
    await set('default', { max_running: 3 })
    expect((await claim()).ids).toEqual([])
    await finish(before, 2)
    expect((await claim()).ids).toHaveLength(1)
    expect(await throttle()).toMatchObject({ is_settled: false })
    await finish(before)
    expect((await claim()).ids).toHaveLength(2)
    expect(await throttle()).toMatchObject({ is_settled: true })
  })

  test('counts what a claim took that was on its way when it was set', async () => {
    await fill(db, 10)
    const session = await open()
    const other = await register(db)
    await session.query('begin')
    expect((await other.claim({ limit: 4 }, session)).ids).toHaveLength(4)
    await set('default', { max_running: 5 })
    const meanwhile = await hand.claim()
    expect([meanwhile.ids, meanwhile.next_due]).toEqual([[], expect.any(Number)])
    await session.query('commit')
    expect((await claim()).ids).toHaveLength(1)
  })

  test('is not held up by an old transaction that claims nothing', async () => {
    await fill(db, 10)
    await db.sql('create table work_of_others as select 1 as n')
    const session = await open()
    await session.query('begin')
    await session.query('select from work_of_others for update')
    await set('default', { max_running: 5 })
    expect((await hand.claim()).ids).toHaveLength(5)
    await session.query('commit')
  })

  test('can be raised, lowered, taken away and set again while jobs run', async () => {
    await set('default', { max_running: 2 })
    await fill(db, 30)
    const two = await claim()
    await set('default', { max_running: 4 })
    const four = await claim()
    expect([two.ids.length, four.ids.length]).toEqual([2, 2])
    await set('default', { max_running: 1 })
    await finish(two)
    expect((await claim()).ids).toEqual([])
    await set('default', { max_running: null })
    const free = await claim({ limit: 7 })
    expect(free.ids).toHaveLength(7)
    await set('default', { max_running: 8 })
    expect((await claim()).ids).toEqual([])
    await finish(free)
    expect((await claim()).ids).toHaveLength(6)
    expect(await running()).toBe(8)
  })

  test('waits for a claim on its way when it is lowered', async () => {
    await set('default', { max_running: 5 })
    await fill(db, 10)
    await finish(await claim({ limit: 1 }))
    const session = await open()
    await session.query('begin')
    expect((await hand.claim({}, session)).ids).toHaveLength(5)
    let isSet = false
    const lowering = set('default', { max_running: 1 }).then(() => {
      isSet = true
    })
    await until('it waits', async () => {
      const text = `select count(*)::integer from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock'`
      return (await db.value<number>(text)) === 1
    })
    expect(isSet).toBe(false)
    await session.query('commit')
    await lowering
    expect((await claim()).ids).toEqual([])
  })

  test('counts a job that runs for long, however many come and go beside it', async () => {
    await set('default', { max_running: 2 })
    await fill(db, 200)
    const oldest = await claim({ limit: 1 })
    for (let n = 0; n < 150; n++) {
      const reply = await claim()
      expect(reply.ids).toHaveLength(1)
      // From now on it is the oldest, far above the floor.
      if (n === 75) await finish(oldest)
      else await finish(reply)
    }
  })

  test('sends a claim away that meets another one, and only from this queue', async () => {
    await set('default', { max_running: 5 })
    await fill(db, 10)
    await fill(db, 10, { queue: `'other'` })
    const session = await open()
    await session.query('begin')
    try {
      await (await register(db)).claim({ limit: 1 }, session)
      const { found, next_due } = await hand.claim([{ limit: 5 }, { queue: 'other', limit: 5 }])
      expect(found).toEqual({ other: 5 })
      // However long the claim took: it is to look again some milliseconds after its end.
      const after = await db.value('select rowlock.ms(rowlock.now())::float8')
      expect(next_due! - after).toBeLessThanOrEqual(8)
    } finally {
      await session.query('commit')
    }
    expect((await claim()).ids).toHaveLength(4)
  })

  test('that is reached is looked at again in a second, for whoever ends a job looks at once', async () => {
    await set('default', { max_running: 1 })
    await fill(db, 5)
    await claim()
    const { ids, next_due, now } = await claim()
    expect(ids).toEqual([])
    expect(next_due! - now).toBeGreaterThanOrEqual(1_000)
    await db.sql('truncate rowlock.waiting')
    expect((await claim()).next_due).toBeNull()
  })
})

describe('a worker that found a queue full', () => {
  /** The names of the queues whose workers are told, in the order of their notices. */
  async function told(work: () => Promise<unknown>): Promise<string[]> {
    const listener = await open()
    const notices: string[] = []
    listener.on('notification', ({ payload = '' }) => notices.push(payload))
    await listener.query(`listen "${await db.value<string>('select rowlock.channel()')}"`)
    await work()
    await listener.query('select 1')
    return notices
  }
  const sleep = (one: Hand) =>
    db.sql(`select rowlock.sleep($1, array['default'], rowlock.now() + interval '1 min')`, [one.id])

  test('is told when a look leaves room: what waits is of a kind that the others do not handle', async () => {
    await set('default', { max_running: 1 })
    await fill(db, 1)
    await fill(db, 5, { kind: `'other'` })
    const reply = await claim()
    const other = await register(db)
    expect((await claim({ kinds: ['other'] }, other)).ids).toEqual([])
    expect(await throttle()).toMatchObject({ is_awaited: true })
    await sleep(other)
    await finish(reply)
    expect(await told(() => claim())).toEqual(['queue default'])
    expect(await throttle()).toMatchObject({ is_awaited: false })
    expect(await told(() => claim())).toEqual([])
  })

  test('is told by a look that leaves room for want of a slot of its own', async () => {
    await set('default', { max_running: 1 })
    await fill(db, 5)
    await fill(db, 1, { queue: `'other'` })
    const reply = await claim()
    const waits = await register(db)
    await claim({}, waits)
    await sleep(waits)
    await finish(reply)
    const wants = [
      { queue: 'other', turn: 0, upto: 1 },
      { queue: 'default', turn: 1, upto: 1 },
    ]
    expect(await told(async () => expect((await hand.claim(wants)).found).toEqual({ other: 1 }))).toEqual([
      'queue default',
    ])
  })

  test('is told nothing while the others take what is free, which costs no write of it', async () => {
    await set('default', { max_running: 1 })
    await fill(db, 20)
    const first = await claim()
    const other = await register(db)
    await claim({}, other)
    await sleep(other)
    const [{ ctid: before }] = await db.sql<Row>('select ctid from rowlock.throttle')
    const notices = await told(async () => {
      let reply = first
      for (let n = 0; n < 10; n++) {
        await finish(reply)
        reply = await claim()
        expect(reply.ids).toHaveLength(1)
      }
    })
    expect(notices).toEqual([])
    expect((await db.sql<Row>('select ctid from rowlock.throttle'))[0].ctid).toBe(before)
  })

  test('is told when the limit is raised or taken away', async () => {
    await set('default', { max_running: 1 })
    await sleep(hand)
    for (const max_running of [2, null]) {
      expect(await told(() => set('default', { max_running }))).toEqual(['settings default', 'queue default'])
    }
    expect(await told(() => set('default', { rate: { starts: 1, per: '1 s' } }))).toContain('queue default')
  })
})

describe('what a limit costs', () => {
  test('is a count from a floor: jobs that died under an old snapshot are not waded through', async () => {
    await db.sql('alter table rowlock.running set (autovacuum_enabled = off)')
    await set('default', { max_running: 5 })
    await fill(db, 10_000)
    const old = await open()
    await old.query('begin isolation level repeatable read')
    await old.query('select 1')
    const session = await open()
    const counted = async () => {
      const text = `explain (analyze, buffers, format json)
        select count(*) from rowlock.running r where r.queue = 'default' and r.limit_no >= $1`
      const { floor } = await throttle()
      await session.query('set enable_seqscan = off; set enable_bitmapscan = off')
      const { rows } = await session.query(text, [floor])
      const { Plan } = rows[0]['QUERY PLAN'][0]
      return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
    }
    for (let n = 0; n < 400; n++) await finish(await claim({ limit: 5 }))
    // 2,000 jobs died. Those above the floor are of at most 64 claims.
    expect(await counted()).toBeLessThanOrEqual(5 * 64 + 20)
    const { floor, is_settled } = await throttle()
    expect([is_settled, Number(floor) > 300]).toEqual([true, true])
    await old.query('commit')
  })

  /** The statements inside of one call. */
  async function statements(wants: readonly Row[]): Promise<string[]> {
    const session = await open()
    const texts: string[] = []
    await session.query(`load 'auto_explain'`)
    await session.query(`set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
                         set auto_explain.log_format = 'json'; set auto_explain.log_level = 'notice'`)
    session.on('notice', ({ message = '' }) => {
      if (message.includes('plan:')) texts.push(JSON.parse(message.slice(message.indexOf('{')))['Query Text'])
    })
    await hand.claim(wants, session)
    return texts
  }

  test('is no statement more for a queue without one, whatever limits others have', async () => {
    await fill(db, 40)
    const before = await statements([{ limit: 10 }])
    await set('other', { max_running: 1, rate: { starts: 1, per: '1 s' } })
    await set('default', { target_wait: '5 s' })
    const after = await statements([{ limit: 10 }])
    expect(after).toEqual(before)
    expect(after.filter((text) => /throttle|limit_no >=/.test(text))).toEqual([])
    await set('default', { max_running: 30 })
    expect(
      (await statements([{ limit: 10 }])).filter((text) => /throttle/.test(text)).length,
    ).toBeGreaterThan(0)
  })

  test('is nothing for a queue without one: no number, no row of its own, no entry of the index', async () => {
    await set('other', { max_running: 1 })
    await fill(db, 10)
    await claim()
    expect(await db.value('select count(*)::integer from rowlock.running where limit_no is not null')).toBe(0)
    expect(await throttle()).toBeUndefined()
  })
})
