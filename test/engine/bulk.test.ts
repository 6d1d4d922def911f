// A change of all jobs that a filter finds: in steps, each of which happens once, whoever runs it and whatever dies.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { until } from '../support/until.ts'
import {
  enqueue,
  enqueueMany,
  fill,
  held,
  type Row,
  type Runner,
  random,
  refusal,
  register,
  seedOf,
  stateOf,
  verb,
} from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('bulk')
})
afterAll(() => db.drop())

let queues = 0
const fresh = () => `q${++queues}`
const begin = (name: string, filter: object | null, args: object = {}): Promise<Row> =>
  db.value(`select rowlock.begin_bulk($1, $2, $3, 'eve', 'why')`, [
    name,
    filter === null ? null : JSON.stringify(filter),
    JSON.stringify(args),
  ])
const step = async (id: string, limit = 500, through: Runner = db.pool): Promise<Row> =>
  (await through.query('select rowlock.run_bulk($1, $2) as row', [id, limit])).rows[0].row
async function run(id: string, limit = 500, through?: Runner): Promise<Row> {
  for (;;) {
    const row = await step(id, limit, through)
    if (row.outcome !== null) return row
  }
}
const waiting = async (count: number, options: Record<string, unknown> = {}) => {
  const queue = fresh()
  const { ids } = await enqueueMany(db, Array(count).fill({ queue, ...options }))
  return { queue, ids }
}
/** How often each job was changed. */
const noted = (name: string, ids: readonly string[]) =>
  db.value<number[]>(
    `select array_agg(distinct n)::integer[] from (
       select count(a.id) as n from unnest($1::bigint[]) as j (id)
         left join rowlock.audit a on a.job_id = j.id and a.verb = $2 group by j.id) as each`,
    [ids, name],
  )

describe('to begin', () => {
  test('counts, keeps and notes what was asked, and changes no job', async () => {
    const { queue, ids } = await waiting(3)
    const row = await begin('cancel', { queue })
    expect(row).toMatchObject({
      verb: 'cancel',
      filter: { queue, state: ['queued', 'retryable', 'running'] },
      actor: 'eve',
      reason: 'why',
      matched: 3,
      about: false,
      changed: 0,
      refused: exactly({}),
      again: 0,
      after_id: '0',
      outcome: null,
    })
    expect(Number(row.upto_id)).toBeGreaterThanOrEqual(Number(ids[2]))
    expect(await stateOf(db, ids[0]!)).toBe('queued')
    const [note] = await db.sql(
      `select actor, reason, queue, detail from rowlock.audit where verb = 'bulk' order by id desc limit 1`,
    )
    const { id, filter } = row
    expect(note).toMatchObject({
      actor: 'eve',
      reason: 'why',
      queue,
      detail: { id, verb: 'cancel', filter, matched: 3 },
    })
    expect((await db.sql('select id, verb from rowlock.bulks(1)'))[0]).toEqual({ id, verb: 'cancel' })
  })

  test.each([
    ['an unknown verb', 'redrve', { queue: 'a' }, {}, 'verb', /did you mean redrive/],
    ['no verb', null, { queue: 'a' }, {}, 'verb', /unknown verb/],
    ['an unknown filter', 'cancel', { quueue: 'a' }, {}, 'quueue', /did you mean queue/],
    ['no filter', 'cancel', null, {}, 'all', /leaves out no job/],
    ['a filter that restricts nothing', 'cancel', {}, {}, 'all', /"all": true/],
    ['all its states', 'redrive', { state: 'dead_letter' }, {}, 'all', /leaves out no job/],
    ['metadata that contain nothing', 'cancel', { metadata: {} }, {}, 'all', /leaves out no job/],
    ['a state of others', 'cancel', { queue: 'a', state: ['queued', 'done'] }, {}, 'state', /are done/],
    ['a state of waiting jobs', 'purge', { state: 'due' }, {}, 'state', /applies to done, failed, cancelled/],
    ['an error', 'cancel', { error: 'no' }, {}, 'error', /dead letters/],
    ['no priority', 'prioritize', { queue: 'a' }, {}, 'priority', /from -10 to 10/],
    ['a priority beyond', 'prioritize', { queue: 'a' }, { priority: 11 }, 'priority', /from -10 to 10/],
    ['half a priority', 'prioritize', { queue: 'a' }, { priority: 0.5 }, 'priority', /from -10 to 10/],
    ['a priority in words', 'prioritize', { queue: 'a' }, { priority: 'high' }, 'priority', /from -10 to 10/],
    ['an argument too many', 'cancel', { queue: 'a' }, { priority: 1 }, 'priority', /takes no argument/],
    ['a near argument', 'prioritize', { queue: 'a' }, { prioity: 1 }, 'prioity', /did you mean priority/],
    ['a list of arguments', 'cancel', { queue: 'a' }, [], 'args', /object/],
  ])('with %s is refused', async (_, name, filter, args, path, says) => {
    const error = await refusal(begin(name as string, filter, args))
    expect(error).toMatchObject({ code: 'RL001', detail: { path } })
    expect(error.message).toMatch(says)
    expect(
      await db.value('select count(*)::integer from rowlock.bulk where ended_at is null and verb = $1', [
        'x',
      ]),
    ).toBe(0)
  })

  test('with nothing but a state that leaves some out, or with all on purpose, is allowed', async () => {
    expect(await begin('purge', { state: 'done' })).toMatchObject({ filter: { state: 'done' } })
    const row = await begin('redrive', { all: true })
    expect(row).toMatchObject({ filter: { all: true, state: ['dead_letter'] } })
    expect(await run(row.id)).toMatchObject({ outcome: 'done', matched: 0, changed: 0 })
  })

  test('and to run need READ COMMITTED', async () => {
    const session = await db.session()
    for (const text of [`begin_bulk('cancel', '{"queue":"a"}')`, 'run_bulk(1)']) {
      await session.query('begin isolation level serializable')
      expect(await refusal(session.query(`select rowlock.${text}`))).toMatchObject({ code: 'RL030' })
      await session.query('rollback')
    }
  })
})

describe('a step', () => {
  test('changes the next jobs in the order of ids, and says how far it came', async () => {
    const { queue, ids } = await waiting(5)
    const { id } = await begin('prioritize', { queue }, { priority: 7 })
    const first = await step(id, 2)
    expect(first.answers).toEqual(ids.slice(0, 2).map((job) => [job, 'prioritized', null]))
    expect(first).toMatchObject({ changed: 2, after_id: ids[1], outcome: null })
    expect((await step(id, 2)).after_id).toBe(ids[3])
    expect(await step(id, 2)).toMatchObject({ changed: 5, outcome: 'done' })
    expect(await noted('prioritize', ids)).toEqual([1])
    expect(await step(id, 2)).toMatchObject({ changed: 5, outcome: 'done', answers: [] })
  })

  test('that was undone has not happened, and none happens twice', async () => {
    const { queue, ids } = await waiting(6, { delay: '1 hour' })
    const { id } = await begin('run_now', { queue })
    await step(id, 2)
    const session = await db.session()
    await session.query('begin')
    await step(id, 2, session)
    await session.query('rollback')
    expect(await run(id, 2)).toMatchObject({ changed: 6, refused: exactly({}) })
    expect(await noted('run_now', ids)).toEqual([1])
  })

  test('is done once where several processes run the same change', async () => {
    const { queue, ids } = await waiting(60, { delay: '1 hour' })
    const { id } = await begin('run_now', { queue })
    const sessions = await Promise.all([db.session(), db.session(), db.session()])
    const ends = await Promise.all(sessions.map((session) => run(id, 7, session)))
    for (const row of ends) expect(row).toMatchObject({ changed: 60, refused: exactly({}), outcome: 'done' })
    expect(await noted('run_now', ids)).toEqual([1])
  })

  test('leaves alone what came after the beginning', async () => {
    const { queue } = await waiting(3)
    const { id } = await begin('cancel', { queue })
    const later = await enqueue(db, { queue })
    expect(await run(id)).toMatchObject({ changed: 3 })
    expect(await stateOf(db, later)).toBe('queued')
  })

  test('counts what it left alone by why', async () => {
    const { queue, ids } = await waiting(2, { dedupe_key: null, max_attempts: 1 })
    const hand = await register(db)
    const { jobs } = await hand.claim({ queue })
    await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    await db.sql(`update rowlock.dead_letter set dedupe_key = 'same' where id = any ($1)`, [ids])
    const { id } = await begin('redrive', { queue })
    expect(await run(id, 1)).toMatchObject({ changed: 1, refused: exactly({ dedupe_key_taken: 1 }) })
  })

  test.each([0, 1001, null])('of %s jobs is refused', async (limit) => {
    expect(await refusal(step('1', limit as number))).toMatchObject({
      code: 'RL001',
      detail: { path: 'limit' },
    })
  })

  test('of a change that is none is refused, and so is stopping it', async () => {
    expect(await refusal(step('999999'))).toMatchObject({ code: 'RL014' })
    expect(await refusal(db.sql('select rowlock.stop_bulk(999999)'))).toMatchObject({ code: 'RL014' })
  })
})

describe('a job that was busy', () => {
  test.each([
    ['free by then, is changed', true, { changed: 3, refused: exactly({}) }],
    ['still held, is left alone', false, { changed: 2, refused: exactly({ busy: 1 }) }],
  ])('is tried once more at the end, and, %s', async (_, isFreed, end) => {
    const { queue, ids } = await waiting(3)
    const { id } = await begin('cancel', { queue })
    const session = await db.session()
    await session.query('begin')
    await session.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
    expect(await step(id)).toMatchObject({ changed: 2, refused: exactly({}), again: 1, outcome: null })
    if (isFreed) await session.query('rollback')
    expect(await step(id)).toMatchObject({ ...end, again: 0, outcome: 'done' })
    await session.query('rollback')
  })
})

test('a job that ran when its turn came is changed if it waits again at the end, and not counted if not', async () => {
  const { queue, ids } = await waiting(4)
  const hand = await register(db)
  const [back, ends, runs] = (await hand.claim({ queue, limit: 3 })).jobs
  const { id } = await begin('prioritize', { queue }, { priority: 7 })
  expect(await step(id)).toMatchObject({
    matched: 1,
    changed: 1,
    refused: exactly({}),
    again: 3,
    outcome: null,
  })
  await verb(db, 'hand_back', [held(back!)])
  await verb(db, 'complete', [held(ends!)])
  expect(await step(id)).toMatchObject({ changed: 2, refused: exactly({}), again: 0, outcome: 'done' })
  expect(
    await db.sql('select id from rowlock.job where priority = 7 and queue = $1 order by id', [queue]),
  ).toEqual([{ id: back!.id }, { id: ids[3] }])
  expect(await stateOf(db, runs!.id)).toBe('running')
  // Where a state is named, one that runs was none of them.
  expect(
    await run((await begin('prioritize', { queue, state: 'retryable' }, { priority: 1 })).id),
  ).toMatchObject({
    changed: 0,
    refused: exactly({}),
  })
})

test('a redrive puts no job back twice, though it dies again meanwhile', async () => {
  const { queue, ids } = await waiting(4, { max_attempts: 1 })
  const hand = await register(db)
  const die = async () => {
    const { jobs } = await hand.claim({ queue })
    await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    return jobs.length
  }
  await die()
  const { id } = await begin('redrive', { queue })
  for (let done = 0; done < 4; done += 2) {
    await step(id, 2)
    expect(await die()).toBe(2)
  }
  expect(await run(id)).toMatchObject({ changed: 4, refused: exactly({}) })
  expect(await noted('redrive', ids)).toEqual([1])
  expect(await stateOf(db, ids[0]!)).toBe('dead_letter')
})

test('a retry does not retry what it made', async () => {
  const { queue, ids } = await waiting(3)
  await db.sql('select rowlock.cancel(id) from unnest($1::bigint[]) as id', [ids])
  const { id } = await begin('retry', { queue })
  for (let round = 0; round < 3; round++) {
    const { answers } = await step(id, 1)
    for (const [, , detail] of answers) await db.sql('select rowlock.cancel($1)', [detail.new_job_id])
  }
  expect(await run(id)).toMatchObject({ changed: 3 })
  expect(await noted('retry', ids)).toEqual([1])
})

test('one that is stopped takes no further step, and keeps what it did', async () => {
  const { queue, ids } = await waiting(3)
  const { id } = await begin('cancel', { queue })
  await step(id, 1)
  const stop = () => db.value<Row>(`select rowlock.stop_bulk($1, 'bob', 'enough')`, [id])
  expect(await stop()).toMatchObject({ outcome: 'stopped', changed: 1 })
  expect(await step(id)).toMatchObject({ outcome: 'stopped', changed: 1, answers: [] })
  expect(await stop()).toMatchObject({ outcome: 'stopped' })
  expect(await stateOf(db, ids[2]!)).toBe('queued')
  const notes = await db.sql(`select actor, reason, detail from rowlock.audit where verb = 'stop_bulk'`)
  expect(notes).toEqual([{ actor: 'bob', reason: 'enough', detail: { id } }])
})

test('a sweep takes away changes and imports of a quarter ago, and stops a change that was left open', async () => {
  const old = `now() - interval '91 days'`
  await db.sql(`update rowlock.bulk set ended_at = ${old}, outcome = 'done'`)
  const { id } = await begin('cancel', { queue: 'a' })
  await db.sql(`update rowlock.bulk set started_at = ${old}, beat_at = ${old} where id = $1`, [id])
  await db.sql(`insert into rowlock.import (key, digest, started_at, beat_at, ended_at)
    values ('old', '', ${old}, ${old}, ${old}), ('left', '', ${old}, ${old}, null), ('new', '', ${old}, now(), null)`)
  const count = await db.value<number>('select count(*)::integer - 1 from rowlock.bulk')
  expect(await db.value('select rowlock.sweep(2)')).toMatchObject({ bulks: 3, imports: 2 })
  expect(await db.value('select rowlock.sweep()')).toMatchObject({ bulks: count - 2, imports: 0 })
  expect(await db.sql('select id, outcome from rowlock.bulk')).toEqual([{ id, outcome: 'stopped' }])
  expect(await db.sql('select key from rowlock.import')).toEqual([{ key: 'new' }])
})

test('a cancel of a whole queue beside workers leaves no job that is neither ended nor asked', async () => {
  const next = random(seedOf('bulk'))
  const count = 3000
  await fill(db, count, { queue: "'busy'", backoff: `'{"type":"fixed","delay_ms":0}'`, max_attempts: '100' })
  let isOver = false
  let claims = 0
  const work = async () => {
    const hand = await register(db)
    const session = await db.session()
    while (!isOver) {
      const { jobs } = await hand.claim({ queue: 'busy', limit: 20 }, session)
      claims += jobs.length
      const ends = { fail: [] as Row[], snooze: [] as Row[], hand_back: [] as Row[] }
      for (const job of jobs) {
        const dice = next()
        if (dice < 0.4) ends.fail.push(held(job, { cause: 'Error' }))
        else if (dice < 0.7) ends.snooze.push(held(job, { after_ms: 0 }))
        else ends.hand_back.push(held(job))
      }
      await session.query('select rowlock.finish($1)', [JSON.stringify(ends)])
    }
  }
  const change = async () => {
    await until('somebody works', () => claims > 0)
    const { id } = await begin('cancel', { queue: 'busy' })
    try {
      return await run(id, 100)
    } finally {
      isOver = true
    }
  }
  const [row] = await Promise.all([change(), work(), work(), work()])
  await db.sql('select rowlock.sweep(10000)')
  const { changed, refused } = row
  expect(changed + (refused.busy ?? 0)).toBe(count)
  const left = await db.value<number>(`select count(*)::integer from rowlock.job
    where queue = 'busy' and state <> 'cancelled'`)
  expect(left).toBe(refused.busy ?? 0)
  expect(await db.value('select count(*)::integer from rowlock.cancel_request')).toBe(0)
  expect(claims).toBeGreaterThan(0)
})
