// The settings of a queue from SQL: what is absent stays, null is back to the default, and a fault names its setting.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  ['q', { max_running: 0 }, 'max_running', /from 1 to 100,000, or null/],
  ['q', { max_running: 1.5 }, 'max_running', /from 1 to 100,000/],
  ['q', { max_running: '3' }, 'max_running', /from 1 to 100,000/],
  ['q', { max_running: 100_001 }, 'max_running', /from 1 to 100,000/],
  ['q', { rate: 100 }, 'rate', /must be \{"starts", "per", "burst"\}, or null/],
  ['q', { rate: { burst: 5 } }, 'rate.starts', /from 1 to 100,000/],
  ['q', { rate: { starts: null, per: '1 s' } }, 'rate.starts', /from 1 to 100,000/],
  ['q', { rate: { starts: 1 } }, 'rate.per', /a length of time with its unit/],
  ['q', { rate: { starts: 1, per: 1 } }, 'rate.per', /a length of time with its unit/],
  ['q', { rate: { starts: 1, per: '0.5 ms' } }, 'rate.per', /from 1 ms to 30 days/],
  ['q', { rate: { starts: 1, per: '2 months' } }, 'rate.per', /from 1 ms to 30 days/],
  ['q', { rate: { starts: 1, per: '1 s', burst: 0 } }, 'rate.burst', /from 1 to 100,000/],
  ['q', { rate: { starts: 1, per: '1 s', brust: 1 } }, 'rate.brust', /did you mean burst/],
  ['q', { max_waiting: 0 }, 'max_waiting', /from 1 to 1,000,000,000, or null/],
  ['q', { when_full: 'wait' }, 'when_full', /refuse or drop, or null/],
  ['q', { when_full: 'drop' }, 'when_full', /set that too/],
  ['q', { max_waiting: null, when_full: 'drop' }, 'when_full', /set that too/],
])('queue %j with %j is refused, and %s named', async (queue, asked, path, says) => {
  const error = await refusal(set(queue, asked))
  expect(error).toMatchObject({ code: 'RL001', detail: { path } })
  expect(error.message).toMatch(says)
})

describe('limits', () => {
  const limits = async (queue: string) =>
    (
      await db.sql(
        `select max_running, rate_starts, rate_per::text, rate_burst, max_waiting::integer, when_full
           from rowlock.queue where name = $1`,
        [queue],
      )
    )[0]
  const none = {
    max_running: null,
    rate_starts: null,
    rate_per: null,
    rate_burst: null,
    max_waiting: null,
    when_full: null,
  }

  test('are set and taken away each by itself', async () => {
    await set('l', {
      max_running: 3,
      rate: { starts: 5, per: '1 min', burst: 2 },
      max_waiting: 9,
      when_full: 'drop',
    })
    expect(await limits('l')).toEqual({
      max_running: 3,
      rate_starts: 5,
      rate_per: '00:01:00',
      rate_burst: 2,
      max_waiting: 9,
      when_full: 'drop',
    })
    await set('l', { max_running: null })
    await set('l', { rate: null })
    expect(await limits('l')).toMatchObject({ max_running: null, rate_starts: null, max_waiting: 9 })
    await set('l', { max_waiting: null })
    expect(await limits('l')).toEqual(none)
  })

  test.each([
    [100, '1 s', 10],
    [3, '1 s', 1],
    [1, '1 day', 1],
    [19, '1 s', 1],
    [100_000, '1 ms', 100_000],
  ])(
    'the burst of %d starts in %s is those of a tenth of a second, at least one: %d',
    async (starts, per, burst) => {
      await set('b', { rate: { starts, per } })
      expect(await limits('b')).toMatchObject({ rate_burst: burst })
    },
  )

  test('are told with the queue, and set from TypeScript as from SQL', async () => {
    await using rowlock = Object.assign(createRowlock({ connectionString: db.url }), {
      [Symbol.asyncDispose]: () => rowlock.close(),
    })
    await rowlock.setQueue('t', { maxRunning: 7, rate: { starts: 100, per: '1s', burst: 4 }, maxWaiting: 50 })
    const told = { maxRunning: 7, rate: { starts: 100, perMs: 1000, burst: 4 }, nextStartAt: null }
    expect(await rowlock.queue('t')).toMatchObject({ ...told, maxWaiting: 50, whenFull: 'refuse' })
    await rowlock.setQueue('t', { maxRunning: null, rate: null, maxWaiting: null })
    expect(await rowlock.queue('t')).toMatchObject({
      maxRunning: null,
      rate: null,
      maxWaiting: null,
      whenFull: null,
    })
    for (const [asked, path] of [
      [{ maxRunning: 0 }, 'maxRunning'],
      [{ rate: { starts: 1 } }, 'rate.per'],
      [{ rate: { per: '1s' } }, 'rate.starts'],
      [{ rate: 5 }, 'rate'],
      [{ rate: { starts: 1, per: '1s', brust: 1 } }, 'rate.brust'],
      [{ whenFull: 'wait' }, 'whenFull'],
    ] as [Row, string][]) {
      await expect(rowlock.setQueue('t', asked)).rejects.toMatchObject({ code: 'INVALID_OPTION', path })
    }
    await expect(rowlock.setQueue('t', { whenFull: 'drop' })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })
})

test('a queue that nobody has heard of can be set and paused', async () => {
  await set('to come', { concurrency: 1 })
  expect(await settings('to come')).toMatchObject({ concurrency: 1 })
  expect(await db.value(`select rowlock.pause('later')`)).toBe(true)
})
