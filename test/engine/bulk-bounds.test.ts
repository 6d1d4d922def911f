// What a change of many jobs waits for, and what it remembers: keys that somebody has in hand, a step that stays open,
// and more jobs than one row can keep.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import {
  enqueueMany,
  fill,
  type Hand,
  held,
  type Row,
  type Runner,
  refusal,
  register,
  stateOf,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
let other: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('bulk bounds')
  hand = await register(db)
})
beforeEach(async () => {
  other = await db.session()
})
afterEach(async () => {
  await other.query('rollback')
})
afterAll(() => db.drop())

let queues = 0
const fresh = () => `q${++queues}`
const begin = (name: string, filter: object, args: object = {}): Promise<Row> =>
  db.value('select rowlock.begin_bulk($1, $2, $3)', [name, JSON.stringify(filter), JSON.stringify(args)])
const step = async (id: string, through: Runner = db.pool): Promise<Row> =>
  (await through.query('select rowlock.run_bulk($1, 500) as row', [id])).rows[0].row
const stop = async (id: string, through: Runner = db.pool): Promise<Row> =>
  (await through.query('select rowlock.stop_bulk($1) as row', [id])).rows[0].row
const remember = (id: string, count: number) =>
  db.sql(
    'update rowlock.bulk set again = array(select -9e15::bigint - g from generate_series(1, $2) g) where id = $1',
    [id, count],
  )
const remembered = (id: string) =>
  db.value<number>('select cardinality(again) from rowlock.bulk where id = $1', [id])

/** Jobs with a key each that a redrive, or a retry, is for. */
async function ended(name: 'redrive' | 'retry', count: number): Promise<{ queue: string; ids: string[] }> {
  const queue = fresh()
  const { ids } = await enqueueMany(
    db,
    Array.from({ length: count }, (_, n) => ({ queue, dedupe_key: `key ${n}`, max_attempts: 1 })),
  )
  const { jobs } = await hand.claim({ queue })
  await verb(
    db,
    name === 'redrive' ? 'fail' : 'complete',
    jobs.map((job) => held(job, name === 'redrive' ? { cause: 'Error' } : {})),
  )
  return { queue, ids }
}
const take = (queue: string, keys: readonly number[]) =>
  enqueueMany(
    db,
    keys.map((n) => ({ queue, dedupe_key: `key ${n}` })),
    other,
  )

describe.each(['redrive', 'retry'] as const)('a %s in steps', (name) => {
  const word = name === 'redrive' ? 'redriven' : 'retried'

  test('leaves a key that an open transaction has in hand, and comes to its job again', async () => {
    const { queue, ids } = await ended(name, 5)
    await other.query('begin')
    await take(queue, [2])
    const { id } = await begin(name, { queue, ended_since: '2000-01-01T00:00:00Z' })
    const first = await step(id)
    expect(first.answers.map((answer: Row) => answer.slice(0, 2))).toEqual(
      ids.map((job, n) => [job, n === 2 ? 'busy' : word]),
    )
    expect(first).toMatchObject({ changed: 4, again: 1, outcome: null })
    expect(first.refused).toEqual({})
    await other.query('rollback')
    const last = await step(id)
    expect(last).toMatchObject({ changed: 5, again: 0, outcome: 'done' })
    expect(last.refused).toEqual({})
  })

  test('finds those that are free among many that are not', async () => {
    const { queue, ids } = await ended(name, 90)
    await other.query('begin')
    await take(
      queue,
      Array.from({ length: 40 }, (_, n) => n),
    )
    const { id } = await begin(name, { queue, ended_since: '2000-01-01T00:00:00Z' })
    const { answers } = await step(id)
    const of = (n: number) => new Set(answers.slice(n, n + 40).map((answer: Row) => answer[1]))
    expect(answers).toHaveLength(ids.length)
    expect(of(0)).toEqual(new Set(['busy']))
    // Who has so many keys in hand is not asked for each of them: some that are free come with the next look.
    expect([...of(40)].every((answer) => answer === word || answer === 'busy')).toBe(true)
    await other.query('rollback')
    expect(await step(id)).toMatchObject({ changed: 90, outcome: 'done' })
  })

  test('leaves the caller’s lock_timeout as it was', async () => {
    const { queue } = await ended(name, 2)
    await other.query('begin')
    await take(queue, [1])
    const { id } = await begin(name, { queue, ended_since: '2000-01-01T00:00:00Z' })
    const session = await db.session()
    await session.query('begin')
    await session.query(`set local lock_timeout = '7s'`)
    expect(await step(id, session)).toMatchObject({ changed: 1, again: 1 })
    expect((await session.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }])
    await session.query('rollback')
  })

  test('called for one job waits for its key', async () => {
    const { queue, ids } = await ended(name, 1)
    await other.query('begin')
    await take(queue, [0])
    const one = db.sql(`select rowlock.${name}($1)`, [ids[0]])
    // Longer than a call for many waits.
    const waits = `select count(*)::integer from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '500 ms'`
    await until('it waits', async () => (await db.value<number>(waits)) > 0)
    await other.query('rollback')
    await one
    expect(await db.value('select count(*)::integer from rowlock.waiting where queue = $1', [queue])).toBe(1)
  })
})

describe('a retry of many', () => {
  const holder = (queue: string) =>
    db.sql('select job_id::text from rowlock.dedupe where queue = $1', [queue])
  const retry = (ids: readonly string[]) => db.sql('select answer, detail from rowlock.retry_many($1)', [ids])
  /** Two ended jobs with one key, of which the first has lost its input. */
  async function twins(): Promise<{ queue: string; ids: string[] }> {
    const { queue, ids } = await ended('retry', 2)
    await db.sql(`update rowlock.finished set dedupe_key = 'same' where id = any ($1)`, [ids])
    await db.sql('update rowlock.finished set input = null where id = $1', [ids[0]])
    return { queue, ids }
  }

  test('names no holder that never was: whose twin came to nothing is busy, and has its turn', async () => {
    const { queue, ids } = await twins()
    expect(await retry(ids)).toEqual([
      { answer: 'not_found', detail: null },
      { answer: 'busy', detail: null },
    ])
    expect(await holder(queue)).toEqual([])
    const { id } = await begin('retry', { queue })
    const row = (await step(id)).outcome === null ? await step(id) : null
    expect(row).toMatchObject({ changed: 1, outcome: 'done' })
    expect(row.refused).toEqual({ not_found: 1 })
  })

  test('gives the keys back of those that came to nothing', async () => {
    const { queue, ids } = await twins()
    expect(await retry([ids[0]!])).toEqual([{ answer: 'not_found', detail: null }])
    expect(await holder(queue)).toEqual([])
  })

  test.each(['redrive', 'retry'] as const)('is durable though the role is set not to: %s', async (name) => {
    const { ids } = await ended(name, 2)
    await other.query('begin')
    await other.query('set local synchronous_commit = off')
    // The wake of those who sleep is asked for only where something was put in.
    await other.query(`select from rowlock.${name}_many($1)`, [ids])
    expect((await other.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }])
  })
})

describe('a stop', () => {
  test('waits for a step in progress, and leaves one alone that has ended with it', async () => {
    const queue = fresh()
    await enqueueMany(db, [{ queue }, { queue }])
    const { id } = await begin('cancel', { queue })
    await other.query('begin')
    await step(id, other)
    const stopped = stop(id)
    await untilBlocked(db)
    await other.query('commit')
    expect(await stopped).toMatchObject({ changed: 2, outcome: 'done' })
    expect(await db.sql(`select from rowlock.audit where verb = 'stop_bulk'`)).toEqual([])
  })

  test('does not wait for ever: of a step that stays open it says BULK_BUSY', async () => {
    const queue = fresh()
    await enqueueMany(db, [{ queue }])
    const { id } = await begin('cancel', { queue })
    await other.query('begin')
    await step(id, other)
    expect(await refusal(stop(id))).toMatchObject({ code: 'RL015', message: /step .* has not ended/ })
    await other.query('rollback')
    expect(await stop(id)).toMatchObject({ changed: 0, outcome: 'stopped' })
  })
})

describe('what is to be tried again stands in one row', () => {
  test('so of jobs that run, those beyond 10,000 are counted as running', async () => {
    const queue = fresh()
    const { ids } = await enqueueMany(db, Array(4).fill({ queue }))
    await hand.claim({ queue, limit: 3 })
    const { id } = await begin('prioritize', { queue }, { priority: 3 })
    await remember(id, 9_999)
    const row = await step(id)
    expect(row).toMatchObject({ changed: 1, again: 10_000, after_id: row.upto_id })
    expect(row.refused).toEqual({ running: 2 })
    expect(await stateOf(db, ids[3]!)).toBe('queued')
  })

  test('and a step ends where its look at what runs ends', async () => {
    const queue = fresh()
    await fill(db, 10_050, { queue: `'${queue}'` })
    await db.sql(
      `with gone as (delete from rowlock.waiting where queue = $1 returning *)
       insert into rowlock.running (id, claim_id, worker_id, claimed_at, available_at, enqueued_at, attempt,
         priority, failures, losses, max_attempts, queue, kind, input)
       select g.id, $2, $2, now(), g.available_at, g.enqueued_at, 1, 0, 0, 0, 3, g.queue, g.kind, g.input from gone g`,
      [queue, randomUUID()],
    )
    const { ids } = await enqueueMany(db, [{ queue, delay: '1 hour' }])
    const { id } = await begin('run_now', { queue })
    const first = await step(id)
    expect(first).toMatchObject({ changed: 0, again: 10_000 })
    expect(Number(first.after_id)).toBeLessThan(Number(ids[0]))
    const second = await step(id)
    expect(second).toMatchObject({ changed: 1, again: 10_000 })
    expect(second.refused).toEqual({ running: 50 })
    await db.sql('delete from rowlock.running where queue = $1', [queue])
  })

  test.each([
    ['with room for it is tried again', 9_999, 10_000, {}],
    ['without room is counted as busy', 10_000, 10_000, { busy: 1 }],
  ])('a job that is busy %s', async (_, before, after, refused) => {
    const queue = fresh()
    const { ids } = await enqueueMany(db, [{ queue }, { queue }])
    const { id } = await begin('cancel', { queue })
    await remember(id, before)
    await other.query('begin')
    await other.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
    const row = await step(id)
    expect(row).toMatchObject({ changed: 1, outcome: null })
    expect(row.refused).toEqual(refused)
    expect(await remembered(id)).toBe(after)
  })
})

test.each(['cancel', 'run_now', 'prioritize', 'redrive', 'discard', 'retry', 'purge'])(
  'only the verb for one job may wait for what others hold: %s',
  async (name) => {
    const args = name === 'prioritize' ? 'p_priority => 1, ' : ''
    const call = `select from rowlock.${name}_many($1, ${args}p_wait => true)`
    expect(await refusal(db.sql(call, [['1', '2']]))).toMatchObject({
      code: 'RL001',
      detail: { path: 'wait' },
    })
    await db.sql(call, [['1']])
  },
)
