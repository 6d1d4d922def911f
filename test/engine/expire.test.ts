// Jobs whose expires_at passed while they waited: cancelled by the sweep, or by the claim that meets them.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, fill, type Hand, register } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('expire')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.worker, rowlock.queue')
  hand = await register(db)
})

const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')

test('jobs that are too late go to history as cancelled, reason expired, and are not claimed', async () => {
  const late = await enqueue(db, { expires_in: '1 minute' })
  const good = await enqueue(db, { expires_in: '1 hour' })
  await db.sql(`update rowlock.waiting set expires_at = clock_timestamp() where id = $1`, [late])
  expect((await hand.claim()).ids).toEqual([good])
  const [job] = await db.sql('select state, reason from rowlock.job where id = $1', [late])
  expect(job).toEqual({ state: 'cancelled', reason: 'expired' })
})

test('jobs that are too late hide nobody, even when more of them than the limit stand in front', async () => {
  await fill(db, 95, { expires_at: 'clock_timestamp()' })
  const { ids } = await enqueueMany(db, [{}, {}])
  expect((await hand.claim({ limit: 10 })).ids).toEqual(ids)
  expect(await db.value(`select count(*)::integer from rowlock.finished where reason = 'expired'`)).toBe(95)
  expect(await waiting()).toBe(0)
})

test('jobs too late that stand between others cost the claim none of its limit', async () => {
  await fill(db, 40, { expires_at: "case when n % 2 = 0 then clock_timestamp() - interval '1 s' end" })
  expect((await hand.claim({ limit: 15 })).jobs).toHaveLength(15)
  expect(await waiting()).toBe(40 - 15 - 14)
})

test('jobs that are too late are those whose instant has passed, and no others', async () => {
  await enqueue(db, { expires_in: '1 minute' })
  expect(await db.value('select rowlock.expire()')).toEqual([])
  expect((await hand.claim()).jobs).toHaveLength(1)
})

test('beyond the bound of one claim the claim says that there is more', async () => {
  await fill(db, 500, { expires_at: 'clock_timestamp()' })
  const good = await enqueue(db)
  const short = await hand.claim({ limit: 1 })
  expect(short.ids).toEqual([])
  expect(short.next_due).toBeLessThanOrEqual(short.now)
  expect((await hand.claim({ limit: 1 })).ids).toEqual([good])
})

test('jobs that are too late in a queue that keeps no history are gone without a trace', async () => {
  await db.sql(`select rowlock.set_queue('brief', '{"retention_days":0}')`)
  const late = await enqueue(db, { queue: 'brief', expires_in: '1 minute' })
  await db.sql(`update rowlock.waiting set expires_at = clock_timestamp()`)
  expect((await hand.claim({ queue: 'brief' })).ids).toEqual([])
  expect(await db.refusal('select rowlock.state_of($1)', [late])).toBe('RL010')
})
