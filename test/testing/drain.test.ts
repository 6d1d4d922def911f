// Working off what is due, with the clock in the test's hand.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  cancel,
  createRowlock,
  defineJob,
  fixed,
  handle,
  handleInTransaction,
  permanent,
  type Rowlock,
  snooze,
} from '../../src/index.ts'
import { drain, testClock } from '../../src/testing/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('drain')
  rowlock = createRowlock({ connectionString: db.url })
  await db.sql('create table done (id bigint, n int)')
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})
afterEach(async () => {
  await testClock(rowlock).reset()
  await db.sql(
    `truncate done, rowlock.waiting, rowlock.running, rowlock.dead_letter, rowlock.finished, rowlock.attempt,
      rowlock.dedupe`,
  )
})

const note = defineJob<any, any>('note', { retry: { maxAttempts: 2, backoff: fixed('1m') } })
const other = defineJob<any>('other', { queue: 'elsewhere' })
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const none = { done: 0, failed: 0, retried: 0, dead: 0, snoozed: 0, cancelled: 0 }
const seen: unknown[] = []
afterEach(() => {
  seen.length = 0
})
const look = handle(note, ({ input }) => void seen.push(input))

describe('drain', () => {
  test('of nothing does nothing', async () => {
    expect(await drain(rowlock, { handlers: [look] })).toEqual(none)
  })

  test('runs what is due, one after the other, in order, more than one batch of it', async () => {
    await rowlock.enqueueMany(Array.from({ length: 250 }, (_, n) => note.with(n)))
    await rowlock.enqueue(note, 'first', { priority: 5 })
    expect(await drain(rowlock, { handlers: [look] })).toEqual({ ...none, done: 251 })
    expect(seen).toEqual(['first', ...Array.from({ length: 250 }, (_, n) => n)])
  })

  test('counts how each attempt ended', async () => {
    const act = handle(note, ({ input }) => {
      if (input === 'snooze') return snooze('1h')
      if (input === 'cancel') return cancel('no more')
      if (input === 'permanent') throw permanent(new Error('never'))
      if (input === 'throw') throw new Error('not now')
      return 'fine'
    })
    await rowlock.enqueueMany(
      ['done', 'snooze', 'cancel', 'permanent', 'throw', 'done'].map((word) => note.with(word)),
    )
    const { id } = await rowlock.enqueue(note, 'throw', { retry: { maxAttempts: 1 } })
    expect(await drain(rowlock, { handlers: [act], logger: silent })).toEqual({
      done: 2,
      failed: 1,
      retried: 1,
      dead: 1,
      snoozed: 1,
      cancelled: 1,
    })
    expect(await rowlock.job(id)).toMatchObject({ state: 'dead_letter', cause: 'Error' })
  })

  test('leaves retries to their time, and takes them when the clock gets there', async () => {
    const fail = handle(note, () => {
      throw new Error('not now')
    })
    const { id } = await rowlock.enqueue(note, 1)
    const clock = testClock(rowlock)
    await clock.set(new Date('2030-06-01T12:00:00Z'))
    expect(await drain(rowlock, { handlers: [fail], logger: silent })).toEqual({ ...none, retried: 1 })
    expect(await drain(rowlock, { handlers: [fail], logger: silent })).toEqual(none)
    expect(await rowlock.job(id)).toMatchObject({
      state: 'retryable',
      availableAt: new Date('2030-06-01T12:01:00Z'),
    })
    await clock.advance('1m')
    expect(await drain(rowlock, { handlers: [fail], logger: silent })).toEqual({ ...none, dead: 1 })
    expect((await rowlock.job(id))!.attempts).toHaveLength(2)
  })

  test('leaves what is scheduled, even for a month, and takes it when the clock gets there', async () => {
    const clock = testClock(rowlock)
    await rowlock.enqueue(note, 'soon', { delay: '1h' })
    await rowlock.enqueue(note, 'later', { delay: '60d' })
    expect(await drain(rowlock, { handlers: [look] })).toEqual(none)
    await clock.advance('2h')
    expect(await drain(rowlock, { handlers: [look] })).toEqual({ ...none, done: 1 })
    await clock.advance('60d')
    expect(await drain(rowlock, { handlers: [look] })).toEqual({ ...none, done: 1 })
    expect(seen).toEqual(['soon', 'later'])
  })

  test('runs what its handlers enqueue, until it has run as many as it may', async () => {
    const again = handle(note, async ({ input }) => void (await rowlock.enqueue(note, input + 1)))
    await rowlock.enqueue(note, 0)
    expect(await drain(rowlock, { handlers: [again], maxJobs: 7 })).toEqual({ ...none, done: 7 })
    expect(await db.sql('select input from rowlock.waiting')).toEqual([{ input: 7 }])
  })

  test('takes nothing beyond maxJobs from the others', async () => {
    await rowlock.enqueueMany(Array.from({ length: 20 }, (_, n) => note.with(n)))
    expect(await drain(rowlock, { handlers: [look], maxJobs: 5 })).toEqual({ ...none, done: 5 })
    expect(await db.value('select count(*)::integer from rowlock.waiting')).toBe(15)
    expect(await db.value('select count(*)::integer from rowlock.running')).toBe(0)
  })

  test('runs the queues of its handlers, or those that are named, and no kind it has no handler for', async () => {
    await rowlock.enqueueMany([note.with(1), note.with(2, { queue: 'elsewhere' }), other.with(3)])
    expect(await drain(rowlock, { handlers: [look] })).toEqual({ ...none, done: 1 })
    expect(await drain(rowlock, { handlers: [look], queues: ['elsewhere'] })).toEqual({ ...none, done: 1 })
    expect(seen).toEqual([1, 2])
    expect(await db.sql('select kind from rowlock.waiting')).toEqual([{ kind: 'other' }])
  })

  test('runs a transactional handler in a transaction: both commit, or neither', async () => {
    const write = handleInTransaction(note, async ({ tx, input, job }) => {
      await tx.query('insert into done values ($1, $2)', [job.id, input])
      if (input === 13) throw new Error('undo')
      if (input === 14) return snooze('1h')
      return input
    })
    await rowlock.enqueueMany([note.with(12), note.with(13), note.with(14)])
    expect(await drain(rowlock, { handlers: [write], logger: silent })).toEqual({
      ...none,
      done: 1,
      retried: 1,
      snoozed: 1,
    })
    expect(await db.sql('select n from done order by n')).toEqual([{ n: 12 }, { n: 14 }])
  })

  test('needs no second connection of a pool that has one', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const clients = [createRowlock({ pool }), createRowlock({ connectionString: db.url, maxConnections: 1 })]
    const write = handleInTransaction(note, async ({ tx, job, input }) => {
      await tx.query('insert into done values ($1, $2)', [job.id, input])
    })
    for (const [n, client] of clients.entries()) {
      await client.enqueue(note, n)
      expect(await drain(client, { handlers: [write], logger: silent })).toEqual({ ...none, done: 1 })
      await client.close()
    }
    await pool.end()
    expect(await db.sql('select n from done order by n')).toEqual([{ n: 0 }, { n: 1 }])
    const left = `select count(*)::integer from pg_stat_activity
      where application_name = 'rowlock drain' and datname = current_database()`
    await until('it has left no connection', async () => (await db.value(left)) === 0)
  })

  test('says so when a handler’s transaction finds no connection, and blames no job', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const client = createRowlock({ pool })
    const { id } = await client.enqueue(note, 1, { timeout: 100 })
    const busy = await pool.connect()
    const write = handleInTransaction(note, async ({ input }) => void seen.push(input))
    await expect(drain(client, { handlers: [write], logger: silent })).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
    })
    busy.release()
    expect(await client.job(id)).toMatchObject({ state: 'queued', failures: 0 })
    // It may take long now, on a machine that is busy.
    await db.sql(`update rowlock.waiting set timeout = interval '10 min'`)
    expect(await drain(client, { handlers: [write], logger: silent })).toEqual({ ...none, done: 1 })
    expect(seen).toEqual([1])
    await client.close()
    await pool.end()
  })

  test('gives a large input and the job’s own schema to the handler', async () => {
    const input = { text: 'x'.repeat(50_000) }
    await rowlock.enqueue(note, input)
    await drain(rowlock, { handlers: [look] })
    expect(seen).toEqual([input])
  })

  test('puts middleware around each handler, transactional or not', async () => {
    const heard: string[] = []
    const middleware = ['outer', 'inner'].map(
      (name) => async (context: { job: { kind: string } }, next: () => Promise<unknown>) => {
        heard.push(`${name} ${context.job.kind}`)
        return next()
      },
    )
    await rowlock.enqueueMany([note.with(1), other.with(2)])
    const write = handleInTransaction(other, async ({ tx }) => void (await tx.query('select 1')))
    expect(await drain(rowlock, { handlers: [look, write], middleware })).toEqual({ ...none, done: 2 })
    expect(heard.sort()).toEqual(['inner note', 'inner other', 'outer note', 'outer other'])
  })

  test('ends a handler at its timeout', async () => {
    const waits = handle(
      note,
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const { id } = await rowlock.enqueue(note, 1, { timeout: 50 })
    expect(await drain(rowlock, { handlers: [waits], logger: silent })).toEqual({ ...none, retried: 1 })
    expect(await rowlock.job(id)).toMatchObject({ cause: 'timeout', attempts: [{ outcome: 'timed_out' }] })
  })

  test('leaves no worker and no job of its own behind', async () => {
    await rowlock.enqueueMany([note.with(1), note.with(2)])
    await drain(rowlock, { handlers: [look] })
    expect(await db.value('select count(*)::integer from rowlock.worker')).toBe(0)
    expect(await db.value('select count(*)::integer from rowlock.running')).toBe(0)
  })

  test.each([
    ['no handlers', {}, 'handlers'],
    ['a slip', { handlers: [look], maxJob: 1 }, 'maxJob'],
    ['no jobs', { handlers: [look], maxJobs: 0 }, 'maxJobs'],
  ])('with %s is refused', async (_, options, path) => {
    await expect(drain(rowlock, options as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', path })
  })

  test('never starts a job that a handler before it has cancelled', async () => {
    const first = await rowlock.enqueue(note, 'first')
    const second = await rowlock.enqueue(note, 'second')
    const handler = handle(note, async ({ input }) => {
      seen.push(input)
      if (input === 'first') expect(await rowlock.cancel(second.id)).toBe('requested')
    })
    expect(await drain(rowlock, { handlers: [handler] })).toEqual({ ...none, done: 1, cancelled: 1 })
    expect(seen).toEqual(['first'])
    expect((await rowlock.job(first.id))?.state).toBe('done')
    expect((await rowlock.job(second.id))?.state).toBe('cancelled')
  })

  test('takes a client, nothing else', async () => {
    await expect(drain({} as never, { handlers: [look] })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      path: 'rowlock',
    })
  })
})

describe('the clock', () => {
  const now = () => db.value<Date>('select rowlock.now()')

  test('stands where it was set, moves when it is told to, and goes on when it is reset', async () => {
    const clock = testClock(rowlock)
    await clock.set(new Date('2030-01-31T12:00:00.123Z'))
    expect(await now()).toEqual(new Date('2030-01-31T12:00:00.123Z'))
    expect(await now()).toEqual(new Date('2030-01-31T12:00:00.123Z'))
    await clock.advance('1d')
    await clock.advance(877)
    expect(await now()).toEqual(new Date('2030-02-01T12:00:01Z'))
    await clock.reset()
    expect(await db.value(`select abs(extract(epoch from rowlock.now() - clock_timestamp())) < 60`)).toBe(
      true,
    )
  })

  test('that runs jumps, and runs on from there', async () => {
    const clock = testClock(rowlock)
    await clock.advance('1h')
    await clock.advance('1h')
    expect(
      await db.value(`select rowlock.now() - clock_timestamp() between interval '1h59m' and interval '2h1m'`),
    ).toBe(true)
    const [before, after] = [
      await db.value<string>('select rowlock.now()::text'),
      await db.value<string>('select rowlock.now()::text'),
    ]
    expect(before < after).toBe(true)
  })

  test('is one for all clients: an advance goes on from where another left it', async () => {
    const another = createRowlock({ connectionString: db.url })
    try {
      const before = await db.value<Date>('select rowlock.now()')
      await testClock(rowlock).advance('1h')
      await testClock(another).advance('1m')
      const after = await db.value<Date>('select rowlock.now()')
      expect(after.getTime() - before.getTime()).toBeGreaterThanOrEqual(61 * 60_000)
      await testClock(rowlock).set(new Date('2030-01-01T00:00:00Z'))
      await testClock(another).advance('1.5s')
      expect(await db.value<Date>('select rowlock.now()')).toEqual(new Date('2030-01-01T00:00:01.500Z'))
    } finally {
      await another.close()
    }
  })

  test('is one, however often a client asks for it', async () => {
    await testClock(rowlock).set(new Date('2030-01-31T12:00:00Z'))
    await testClock(rowlock).advance('1h')
    expect(await now()).toEqual(new Date('2030-01-31T13:00:00Z'))
  })

  test.each([
    ['set', new Date('x')],
    ['set', '2030-01-01'],
    ['advance', '1x'],
    ['advance', -1],
  ] as const)('%s refuses %s', async (verb, value) => {
    await expect(testClock(rowlock)[verb](value as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('is set by the owner of the installation only', async () => {
    const role = `clock guest ${process.pid}`
    await db.sql(`create role "${role}" login password 'guest'`)
    const url = new URL(db.url)
    url.username = encodeURIComponent(role)
    url.password = 'guest'
    const guest = createRowlock({ connectionString: url.href })
    await db.sql(`grant usage on schema rowlock to "${role}"`)
    try {
      await expect(testClock(guest).set(new Date())).rejects.toMatchObject({ code: '42501' })
    } finally {
      await guest.close()
      await db.sql(`drop owned by "${role}"; drop role "${role}"`)
    }
  })

  test('can be set again by another client: a running clock is the database’s, not the client’s', async () => {
    await testClock(rowlock).set(new Date('2030-01-31T12:00:00Z'))
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    await testClock(createRowlock({ pool })).reset()
    expect(await db.value(`select abs(extract(epoch from rowlock.now() - clock_timestamp())) < 60`)).toBe(
      true,
    )
    await pool.end()
  })
})
