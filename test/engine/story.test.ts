// What happened to a job, told in order from every phase that it can be in.

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createRowlock, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { endLease, enqueue, held, register, verb } from './by-hand.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('story')
  rowlock = createRowlock({ connectionString: db.url })
})
afterEach(() =>
  db.sql('delete from rowlock.waiting; delete from rowlock.running; delete from rowlock.worker'),
)
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const events = async (id: string) => (await rowlock.story(id)).map(({ event }) => event)
const line = async (id: string, event: string) =>
  (await rowlock.story(id)).findLast((one) => one.event === event)

test('a job that waits: since when, and until when', async () => {
  const at = '2030-01-31T12:00:00Z'
  const id = await enqueue(db, { available_at: at, queue: 'email', priority: 3, dedupe_key: 'one' })
  const [enqueued, queued, ...rest] = await rowlock.story(id)
  expect(rest).toEqual([])
  expect(enqueued).toEqual({
    at: expect.any(Date),
    event: 'enqueued',
    attempt: null,
    worker: null,
    cause: null,
    actor: null,
    reason: null,
    detail: { queue: 'email', kind: 'k', priority: 3, dedupe_key: 'one' },
  })
  expect(queued).toMatchObject({ event: 'queued', at: new Date(at) })
})

test('a job that runs, and one that is done, with its result', async () => {
  const hand = await register(db)
  const id = await enqueue(db)
  const { jobs } = await hand.claim()
  expect(await events(id)).toEqual(['enqueued', 'claimed'])
  await verb(
    db,
    'start',
    jobs.map((job) => held(job)),
  )
  expect(await events(id)).toEqual(['enqueued', 'claimed', 'started'])
  expect(await line(id, 'claimed')).toMatchObject({ attempt: 1, worker: 'by hand' })
  await verb(
    db,
    'complete',
    jobs.map((job) => held(job, { result: { sent: 1 } })),
  )
  expect(await events(id)).toEqual(['enqueued', 'claimed', 'started', 'done'])
  expect(await line(id, 'done')).toMatchObject({ attempt: 1, detail: { result: { sent: 1 } } })
})

test('a job with a hard life: each attempt, what people did and why, and its end', async () => {
  const hand = await register(db)
  const id = await enqueue(db, { max_attempts: 2, backoff: { type: 'fixed', delay_ms: 3_600_000 } })
  const fail = async (message: string) => {
    const { jobs } = await hand.claim()
    const more = { outcome: 'failed', cause: 'ECONNREFUSED', error: { name: 'Error', message }, ran_ms: 5 }
    await verb(
      db,
      'fail',
      jobs.map((job) => held(job, more)),
    )
  }
  await fail('the first')
  expect(await events(id)).toEqual(['enqueued', 'claimed', 'started', 'failed', 'retryable'])
  expect((await line(id, 'retryable'))!.detail).toEqual({ failures: 1 })
  await rowlock.prioritize(id, 5, { actor: 'ana' })
  await rowlock.runNow(id, { actor: 'ana', reason: 'the provider is back' })
  const { jobs } = await hand.claim()
  await verb(
    db,
    'snooze',
    jobs.map((job) => held(job, { after_ms: 0, ran_ms: 1 })),
  )
  await fail('the last')
  const story = await rowlock.story(id)
  expect(story.map(({ event, attempt }) => [event, attempt])).toEqual([
    ['enqueued', null],
    ['claimed', 1],
    ['started', 1],
    ['failed', 1],
    ['prioritize', null],
    ['run_now', null],
    ['claimed', 2],
    ['started', 2],
    ['snoozed', 2],
    ['claimed', 3],
    ['started', 3],
    ['failed', 3],
    ['dead_letter', 3],
  ])
  expect(story[3]).toMatchObject({ cause: 'ECONNREFUSED', detail: { error: { message: 'the first' } } })
  expect(story[5]).toMatchObject({ actor: 'ana', reason: 'the provider is back' })
  expect(story.at(-1)).toMatchObject({ cause: 'ECONNREFUSED', detail: { failures: 2 } })

  await rowlock.redrive(id, { actor: 'bo' })
  expect((await events(id)).slice(-3)).toEqual(['failed', 'redrive', 'queued'])
  await rowlock.cancel(id, { actor: 'bo', reason: 'no more' })
  const [cancel, cancelled] = (await rowlock.story(id)).slice(-2)
  expect(cancel).toMatchObject({ event: 'cancel', actor: 'bo', reason: 'no more' })
  expect(cancelled).toMatchObject({ event: 'cancelled', actor: 'bo', reason: 'no more' })
  const again = await rowlock.retry(id, { actor: 'cy' })
  expect((await rowlock.story(id)).at(-1)).toMatchObject({
    event: 'retry',
    actor: 'cy',
    detail: { new_job_id: again.id },
  })
  expect(await line(again.id, 'enqueued')).toMatchObject({ detail: { retried_from: id } })
})

test('a job that was lost with its worker, which by then has no name any more', async () => {
  const hand = await register(db)
  const id = await enqueue(db)
  await hand.claim()
  await endLease(db, hand)
  await db.sql('select rowlock.reap()')
  expect(await events(id)).toEqual(['enqueued', 'claimed', 'lost', 'queued'])
  expect(await line(id, 'lost')).toMatchObject({ worker: hand.id, cause: 'lease_lost' })
})

test('a job that was asked to be cancelled while it ran, and ended well', async () => {
  const hand = await register(db)
  const id = await enqueue(db)
  const { jobs } = await hand.claim()
  await rowlock.cancel(id, { actor: 'ana' })
  await verb(
    db,
    'complete',
    jobs.map((job) => held(job)),
  )
  expect(await events(id)).toEqual(['enqueued', 'claimed', 'started', 'cancel', 'done'])
})

test('a job that no longer is, for somebody purged it, still says so', async () => {
  await db.sql(
    `insert into rowlock.audit (at, verb, job_id, actor) values (now(), 'purge', 123456789, 'ana')`,
  )
  expect(await rowlock.story('123456789')).toMatchObject([{ event: 'purge', actor: 'ana' }])
})

test('an id that no job has is refused', async () => {
  await expect(rowlock.story('999999999')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  await expect(rowlock.story('x')).rejects.toMatchObject({ code: 'INVALID_OPTION', path: 'id' })
})

test('is told in the transaction of the caller too', async () => {
  const session = await db.session()
  await session.query('begin')
  const id = await enqueue({
    ...db,
    value: async (text: string, values: unknown[]) => {
      const { rows } = await session.query(text, values)
      return Object.values(rows[0])[0]
    },
  } as TestRowlock)
  expect((await rowlock.in(session).story(id)).map(({ event }) => event)).toEqual(['enqueued', 'queued'])
  await session.query('rollback')
  await expect(rowlock.story(id)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
})

test('is bounded: of a job with very many attempts the last thousand', async () => {
  const id = await enqueue(db)
  await db.sql(
    `insert into rowlock.attempt (job_id, ended_at, claimed_at, worker_id, attempt, retention_days, outcome)
     select $1, clock_timestamp(), clock_timestamp(), gen_random_uuid(), n, 7, 'snoozed'
       from generate_series(1, 1005) as n`,
    [id],
  )
  const attempts = (await rowlock.story(id)).filter(({ event }) => event === 'snoozed')
  expect(attempts.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 6))
})
