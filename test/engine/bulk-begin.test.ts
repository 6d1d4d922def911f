// How a bulk change begins: once for one verb and filter, from the first job of an installation on, and for what the
// verb would change. One that nobody goes on with ends.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, type Row, refusal } from './by-hand.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('bulk begin')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const begin = (verb: string, filter: Row, args: Row = {}) =>
  db.value<Row>(`select rowlock.begin_bulk($1, $2, $3, 'eve')`, [verb, filter, args])
const step = (id: string) => db.value<Row>('select rowlock.run_bulk($1)', [id])

// First in this file: nothing has been enqueued yet.
test('on an installation without jobs it is of none, and not of the first that comes', async () => {
  const row = await begin('cancel', { queue: 'first' })
  expect(row).toMatchObject({ upto_id: '0', matched: 0 })
  await enqueue(db, { queue: 'first' })
  expect(await step(row.id)).toMatchObject({ changed: 0, outcome: 'done', answers: [] })
  expect((await begin('cancel', { queue: 'first' })).matched).toBe(1)
})

describe('the same change, begun again', () => {
  test('is refused while the first has not ended, and named: a job is retried once', async () => {
    const { ids } = await enqueueMany(db, Array(3).fill({ queue: 'again' }))
    await db.sql('select * from rowlock.cancel_many($1)', [ids])
    const first = await begin('retry', { queue: 'again' })
    expect(await refusal(begin('retry', { queue: 'again' }))).toMatchObject({
      code: 'RL016',
      message: `the bulk change ${first.id} is the same and has not ended`,
      detail: { bulk: first.id },
    })
    await expect(rowlock.bulk('retry', { queue: 'again' })).rejects.toMatchObject({
      code: 'BULK_OPEN',
      bulk: first.id,
    })
    expect(await step(first.id)).toMatchObject({ changed: 3, outcome: 'done' })
    const made = await db.value(
      'select count(*)::integer from rowlock.waiting where retried_from = any ($1)',
      [ids],
    )
    expect(made).toBe(3)
    expect((await begin('retry', { queue: 'again' })).id).not.toBe(first.id)
  })

  test('is another where it says anew, has another filter or verb, or other arguments', async () => {
    const first = await begin('prioritize', { queue: 'other' }, { priority: 1 })
    expect((await begin('prioritize', { queue: 'other' }, { priority: 2 })).outcome).toBeNull()
    expect((await begin('prioritize', { queue: 'others' }, { priority: 1 })).outcome).toBeNull()
    expect((await begin('cancel', { queue: 'other' })).outcome).toBeNull()
    const again = await begin('prioritize', { queue: 'other' }, { priority: 1, anew: true })
    expect(again).toMatchObject({ args: { priority: 1 }, outcome: null })
    expect(again.id).not.toBe(first.id)
    expect(
      (await rowlock.bulk('prioritize', { queue: 'other' }, { priority: 1, anew: true })).row.args,
    ).toEqual({
      priority: 1,
    })
    expect(await refusal(begin('cancel', { queue: 'other' }, { anew: 1 }))).toMatchObject({
      detail: { path: 'anew' },
    })
    await expect(rowlock.bulk('cancel', { queue: 'x' }, { anew: 'yes' as never })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      path: 'anew',
    })
  })
})

describe('to run now', () => {
  test('is of what is scheduled and of what is to be retried, and leaves what is due as it is', async () => {
    const { ids } = await enqueueMany(
      db,
      [{}, { delay: '1 hour' }, { delay: '1 hour' }].map((o) => ({ queue: 'now', ...o })),
    )
    const [due, later, retry] = ids
    await db.sql(`update rowlock.waiting set cause = 'Error' where id = $1`, [retry])
    const before = await db.value(`select xmin::text from rowlock.waiting where id = $1`, [due])
    const row = await begin('run_now', { queue: 'now' })
    expect(row).toMatchObject({ filter: { state: ['scheduled', 'retryable'] }, matched: 2 })
    expect(await step(row.id)).toMatchObject({
      answers: [
        [later, 'due', null],
        [retry, 'due', null],
      ],
      outcome: 'done',
    })
    expect(await db.value(`select xmin::text from rowlock.waiting where id = $1`, [due])).toBe(before)
  })

  test('a job that is due is said to be, not written and not noted', async () => {
    const { ids } = await enqueueMany(db, [{ queue: 'due' }, { queue: 'due', delay: '1 hour' }])
    const xmin = () => db.value<string>(`select xmin::text from rowlock.waiting where id = $1`, [ids[0]])
    const before = await xmin()
    const answers = await db.sql('select id, answer from rowlock.run_now_many($1)', [ids])
    expect(answers).toEqual(ids.map((id) => ({ id, answer: 'due' })))
    expect(await xmin()).toBe(before)
    expect(await db.sql('select job_id from rowlock.audit where job_id = any ($1)', [ids])).toEqual([
      { job_id: ids[1] },
    ])
  })

  test.each([[['queued', 'retryable']], [['scheduled', 'retryable']]])(
    'with %j alone restricts nothing',
    async (state) => {
      expect(await refusal(begin('run_now', { state }))).toMatchObject({
        code: 'RL001',
        detail: { path: 'all' },
      })
    },
  )
})

test('one that nobody has gone on with for 90 days is stopped, and is gone 90 days later', async () => {
  const { id } = await begin('cancel', { queue: 'forgotten' })
  const { id: fresh } = await begin('cancel', { queue: 'fresh' })
  await db.sql(`update rowlock.bulk set beat_at = now() - interval '91 days' where id = $1`, [id])
  expect(await db.value<Row>('select rowlock.sweep()')).toMatchObject({ bulks: 1 })
  expect((await rowlock.openBulk(id)).row).toMatchObject({ outcome: 'stopped', endedAt: expect.any(Date) })
  expect((await rowlock.openBulk(fresh)).row.outcome).toBeNull()
  await db.sql(`update rowlock.bulk set ended_at = now() - interval '91 days' where id = $1`, [id])
  await db.sql('select rowlock.sweep()')
  await expect(rowlock.openBulk(id)).rejects.toMatchObject({ code: 'BULK_NOT_FOUND' })
})

test('a list for people says how many are to be tried again, and a list for programs is the same rows', async () => {
  const { id } = await begin('cancel', { queue: 'list' })
  await db.sql(`update rowlock.bulk set again = '{5,-6}' where id = $1`, [id])
  expect(await db.sql('select id, again, upto_id from rowlock.bulks(1)')).toEqual([
    { id, again: 2, upto_id: expect.any(String) },
  ])
  const [row] = await db.value<Row[]>('select rowlock.bulks_page(1)')
  expect(row).toEqual(await db.value('select rowlock.bulk_json(b) from rowlock.bulk b where b.id = $1', [id]))
  expect(Object.keys(row!).sort()).toEqual(
    Object.keys((await db.sql('select * from rowlock.bulks(1)'))[0]).sort(),
  )
  expect((await rowlock.bulks({ limit: 1 }))[0]).toMatchObject({ id, again: 2, startedAt: expect.any(Date) })
})
