// The settings of a queue from SQL: what is absent stays, null is back to the default, and a fault names its setting.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Row, refusal } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('settings')
})
afterAll(() => db.drop())

const set = (queue: string | null, settings: Row | null) =>
  db.sql('select rowlock.set_queue($1, $2)', [queue, settings && JSON.stringify(settings)])
const settings = async (queue: string) =>
  (
    await db.sql(
      `select retention_days, extract(epoch from target_wait)::integer as target_wait, concurrency
         from rowlock.queue where name = $1`,
      [queue],
    )
  )[0]

test('what is absent stays, and null is back to the default, each by itself', async () => {
  await set('q', { retention_days: 30, target_wait: '5 min', concurrency: 4 })
  await set('q', { target_wait: null })
  expect(await settings('q')).toEqual({ retention_days: 30, target_wait: 60, concurrency: 4 })
  await set('q', { retention_days: null, target_wait: '30s' })
  expect(await settings('q')).toEqual({ retention_days: 7, target_wait: 30, concurrency: 4 })
  await set('q', { concurrency: null })
  expect(await settings('q')).toEqual({ retention_days: 7, target_wait: 30, concurrency: null })
})

test('the client says null too', async () => {
  await using rowlock = Object.assign(createRowlock({ connectionString: db.url }), {
    [Symbol.asyncDispose]: () => rowlock.close(),
  })
  await rowlock.setQueue('client', { retentionDays: 90, targetWait: '2m', concurrency: 3 })
  await rowlock.setQueue('client', { retentionDays: null, targetWait: null })
  expect(await settings('client')).toEqual({ retention_days: 7, target_wait: 60, concurrency: 3 })
})

test.each<[string | null, Row | null, string, RegExp]>([
  [null, {}, 'queue', /^queue must have 1 to 100 bytes$/],
  ['', {}, 'queue', /1 to 100 bytes/],
  ['ü'.repeat(51), {}, 'queue', /1 to 100 bytes/],
  ['q', null, 'settings', /must be an object/],
  ['q', { retentoin_days: 1 }, 'retentoin_days', /did you mean retention_days/],
  ['q', { retention_days: 8 }, 'retention_days', /must be 0, 1, 7, 30 or 90, or null/],
  ['q', { retention_days: '7' }, 'retention_days', /must be 0, 1, 7, 30 or 90/],
  ['q', { target_wait: 60 }, 'target_wait', /with its unit/],
  ['q', { target_wait: '60' }, 'target_wait', /with its unit/],
  ['q', { target_wait: '-1 s' }, 'target_wait', /up to 30 days/],
  ['q', { target_wait: '31 days' }, 'target_wait', /up to 30 days/],
  ['q', { target_wait: 'soon' }, 'target_wait', /a length of time/],
  ['q', { concurrency: 0 }, 'concurrency', /from 1 to 1,000, or null/],
  ['q', { concurrency: 2.5 }, 'concurrency', /from 1 to 1,000/],
  ['q', { concurrency: 'many' }, 'concurrency', /from 1 to 1,000/],
  ['q', { concurrency: 1e20 }, 'concurrency', /from 1 to 1,000/],
])('queue %j with %j is refused, and %s named', async (queue, asked, path, says) => {
  const error = await refusal(set(queue, asked))
  expect(error).toMatchObject({ code: 'RL001', detail: { path } })
  expect(error.message).toMatch(says)
})

test('a queue that nobody has heard of can be set and paused', async () => {
  await set('to come', { concurrency: 1 })
  expect(await settings('to come')).toMatchObject({ concurrency: 1 })
  expect(await db.value(`select rowlock.pause('later')`)).toBe(true)
})
