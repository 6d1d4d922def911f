// A purge leaves nothing of an ended job but the record of who did it, and touches nothing that is not ended.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, held, picture, refusal, register, stateOf, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('purge')
  hand = await register(db)
})
afterAll(() => db.drop())

const large = 'x'.repeat(9_000)
let queues = 0

/** A job with a large input that failed once and then ended. */
async function ended(days: number): Promise<string> {
  const queue = `q${++queues}`
  await db.sql('select rowlock.set_queue($1, $2)', [queue, JSON.stringify({ retention_days: days })])
  const job = { kind: 'k', queue, input: large, backoff: { type: 'fixed', delay_ms: 0 } }
  await db.sql('select rowlock.enqueue_many($1)', [JSON.stringify([job])])
  const first = (await hand.claim({ queue })).jobs[0]!
  await verb(db, 'fail', [held(first, { cause: 'Error' })])
  const again = (await hand.claim({ queue })).jobs[0]!
  await verb(db, 'complete', [held(again)])
  return again.id
}

test.each([1, 7, 30, 90])(
  'purge finds a job in the class of %i days, with its attempts and its input',
  async (days) => {
    const before = await picture(db)
    const id = await ended(days)
    expect(await stateOf(db, id)).toBe('done')
    await db.sql(`select rowlock.purge($1, 'eve', 'she asked for it')`, [id])
    expect(await picture(db)).toEqual(before)
    expect(
      await db.sql('select verb, job_id, actor, reason from rowlock.audit where job_id = $1', [id]),
    ).toEqual([{ verb: 'purge', job_id: id, actor: 'eve', reason: 'she asked for it' }])
    expect(await refusal(db.sql('select rowlock.purge($1)', [id]))).toMatchObject({ code: 'RL010' })
  },
)

test('purge finds a job on any day', async () => {
  await db.sql(`select rowlock.make_days(rowlock.now() - interval '3 days', 1)`)
  const id = await ended(7)
  await db.sql(`update rowlock.finished set finished_at = finished_at - interval '3 days' where id = $1`, [
    id,
  ])
  await db.sql('select rowlock.purge($1)', [id])
  expect(await stateOf(db, id)).toBeUndefined()
})

test('a purge that is rolled back leaves the job whole', async () => {
  const id = await ended(7)
  const before = await picture(db)
  const session = await db.session()
  await session.query('begin')
  await session.query('select rowlock.purge($1)', [id])
  await session.query('rollback')
  expect(await picture(db)).toEqual(before)
})

test('a job whose input is going with its day is busy, so that no input is left without its job', async () => {
  const id = await ended(7)
  const session = await db.session()
  await session.query('begin')
  await session.query('delete from rowlock.payload where job_id = $1', [id])
  expect(await db.sql('select answer from rowlock.purge_many(array[$1::bigint])', [id])).toEqual([
    { answer: 'busy' },
  ])
  await session.query('rollback')
  expect(await db.value('select input from rowlock.job where id = $1', [id])).toBe(large)
  await db.sql('select rowlock.purge($1)', [id])
})

test('a retry beside a purge copies the job whole, or finds none', async () => {
  for (let round = 0; round < 10; round++) {
    const id = await ended(7)
    const [retried] = await Promise.all([
      db.sql('select answer, detail from rowlock.retry_many(array[$1::bigint])', [id]),
      db.sql('select rowlock.purge($1)', [id]),
    ])
    const { answer, detail } = retried[0]!
    expect(['retried', 'not_found']).toContain(answer)
    if (answer !== 'retried') continue
    expect(await db.value('select input from rowlock.job where id = $1', [detail.new_job_id])).toBe(large)
  }
})
