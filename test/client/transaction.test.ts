// Every verb in the caller's own transaction, through each client that people have: what it does exists when, and only
// if, that transaction commits.

import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, type Queryable, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

/** A client of some library, as its users would hand it over. */
interface Client {
  /** Run a body in a transaction: committed when it answers, rolled back when it throws. */
  transaction<T>(body: (tx: Queryable) => Promise<T>, isolation?: string): Promise<T>
  end(): Promise<void>
}

const CLIENTS: [string, (url: string) => Client][] = [
  [
    'pg',
    (url) => {
      const pool = new pg.Pool({ connectionString: url, max: 2 })
      pool.on('error', () => {})
      return {
        async transaction(body, isolation = 'read committed') {
          const client = await pool.connect()
          try {
            await client.query(`begin isolation level ${isolation}`)
            const value = await body(client)
            await client.query('commit')
            return value
          } catch (error) {
            await client.query('rollback')
            throw error
          } finally {
            client.release()
          }
        },
        end: () => pool.end(),
      }
    },
  ],
  [
    'postgres.js',
    (url) => {
      const sql = postgres(url, { max: 2, onnotice: () => {} })
      return {
        async transaction(body, isolation = 'read committed') {
          return (await sql.begin(`isolation level ${isolation}`, (tx) =>
            // The one line that the documentation of Queryable gives.
            body({
              query: async (text, values = []) => ({ rows: [...(await tx.unsafe(text, values as never[]))] }),
            }),
          )) as never
        },
        end: () => sql.end(),
      }
    },
  ],
]

const note = defineJob<unknown>('note')

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('transaction')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})
beforeEach(() =>
  db.sql(
    'truncate rowlock.waiting, rowlock.running, rowlock.dead_letter, rowlock.finished, rowlock.dedupe, rowlock.queue',
  ),
)
const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const undone = new Error('undone')

describe.each(CLIENTS)('in a transaction of %s', (name, connect) => {
  let client: Client
  beforeAll(() => {
    client = connect(db.url)
  })
  afterAll(() => client.end())

  test('a job exists for others when it commits', async () => {
    const { id } = await client.transaction(async (tx) => {
      const enqueued = await rowlock.in(tx).enqueue(note, { n: 1 })
      expect(await rowlock.job(enqueued.id)).toBeNull()
      expect(await rowlock.in(tx).job(enqueued.id)).toMatchObject({ state: 'queued', input: { n: 1 } })
      return enqueued
    })
    expect(await rowlock.job(id)).toMatchObject({ state: 'queued', input: { n: 1 } })
  })

  test('a job never existed when it is rolled back', async () => {
    const work = client.transaction(async (tx) => {
      await rowlock.in(tx).enqueue(note, 1, { dedupeKey: 'k' })
      await rowlock.in(tx).enqueueMany([note.with(2), note.with(3)])
      throw undone
    })
    await expect(work).rejects.toBe(undone)
    expect(await waiting()).toBe(0)
    expect(await rowlock.enqueue(note, 1, { dedupeKey: 'k' })).toMatchObject({ created: true })
  })

  test('a dedupe key finds the live job, with its id as text', async () => {
    await db.sql(`select setval('rowlock.job_id', 9007199254740993, false)`)
    const first = await rowlock.enqueue(note, 1, { dedupeKey: 'k' })
    const again = await client.transaction((tx) => rowlock.in(tx).enqueue(note, 2, { dedupeKey: 'k' }))
    expect(again).toEqual({ id: '9007199254740993', created: false })
    expect(first.id).toBe(again.id)
  })

  test.each([
    ['null', null],
    ['true', true],
    ['a number', 5],
    ['a text', 'text'],
    ['a text that looks like JSON', '{"a":1}'],
    ['a text that is empty', ''],
    ['an array', [1, [2], null]],
    ['an empty array', []],
    ['an empty object', {}],
    ['an object', { a: { b: [null, 1.5, '"\\ é 😀'] } }],
  ])('%s is stored as what it is, not as text of it', async (_, input) => {
    const [one, many] = await client.transaction(async (tx) => [
      await rowlock.in(tx).enqueue(note, input, { metadata: { input } }),
      ...(await rowlock.in(tx).enqueueMany([note.with(input)])),
    ])
    const types = await db.sql(
      `select jsonb_typeof(input) as input, coalesce(jsonb_typeof(metadata -> 'input'), jsonb_typeof(input)) as metadata
         from rowlock.waiting`,
    )
    const type = input === null ? 'null' : Array.isArray(input) ? 'array' : typeof input
    expect(types).toEqual([
      { input: type, metadata: type },
      { input: type, metadata: type },
    ])
    for (const { id } of [one!, many!]) {
      const found = await client.transaction((tx) => rowlock.in(tx).job(id))
      expect(found!.input).toEqual(input)
      expect(found).toEqual(await rowlock.job(id))
    }
  })

  test('every verb works, and is undone with it', async () => {
    const { id } = await rowlock.enqueue(note, 1, { delay: '1h' })
    const verbs = async (tx: Queryable) => {
      const inside = rowlock.in(tx)
      await inside.prioritize(id, 7, { actor: 'ada', reason: 'now' })
      await inside.runNow(id)
      expect(await inside.pause('default')).toBe(true)
      expect(await inside.pause('default')).toBe(false)
      expect(await inside.resume('default')).toBe(true)
      await inside.setQueue('default', { retentionDays: 30, targetWait: '5m' })
      expect(await inside.job(id)).toMatchObject({ priority: 7, state: 'queued' })
      expect(await inside.cancel(id, { actor: 'ada', reason: 'no more' })).toBe('cancelled')
      expect(await inside.cancel(id)).toBe('already_ended')
      const again = await inside.retry(id)
      expect(await inside.job(again.id)).toMatchObject({ state: 'queued', retriedFrom: id, priority: 7 })
      return again.id
    }
    await expect(
      client.transaction(async (tx) => {
        await verbs(tx)
        throw undone
      }),
    ).rejects.toBe(undone)
    expect(await rowlock.job(id)).toMatchObject({ state: 'queued', priority: 0 })
    expect(await db.value('select count(*)::integer from rowlock.queue where retention_days = 30')).toBe(0)

    const again = await client.transaction(verbs)
    expect(await rowlock.job(id)).toMatchObject({ state: 'cancelled', actor: 'ada', reason: 'no more' })
    expect(await rowlock.job(again)).toMatchObject({ state: 'queued' })
  })

  test('a dead letter is redriven or discarded in it', async () => {
    const ids = (await rowlock.enqueueMany([note.with(1), note.with(2)])).map(({ id }) => id)
    await db.sql(
      `with gone as (delete from rowlock.waiting returning *)
       insert into rowlock.dead_letter (id, queue, kind, priority, attempt, failures, losses, available_at, enqueued_at,
                                        dead_at, input, cause)
       select id, queue, kind, priority, 10, 10, 0, available_at, enqueued_at, now(), input, 'x' from gone`,
    )
    await client.transaction(async (tx) => {
      await rowlock.in(tx).redrive(ids[0]!)
      await rowlock.in(tx).discard(ids[1]!)
    })
    expect(await rowlock.job(ids[0]!)).toMatchObject({ state: 'queued', failures: 0 })
    expect(await rowlock.job(ids[1]!)).toMatchObject({ state: 'cancelled', reason: 'discarded' })
  })

  test('an error of a verb keeps its code and what it knows', async () => {
    const work = client.transaction((tx) => rowlock.in(tx).runNow('77'))
    await expect(work).rejects.toMatchObject({
      name: 'RowlockError',
      code: 'JOB_NOT_FOUND',
      sqlstate: 'RL010',
    })
    const { id } = await rowlock.enqueue(note, 1, { dedupeKey: 'k' })
    await rowlock.cancel(id)
    const holder = await rowlock.enqueue(note, 2, { dedupeKey: 'k' })
    await expect(client.transaction((tx) => rowlock.in(tx).retry(id))).rejects.toMatchObject({
      code: 'DEDUPE_KEY_TAKEN',
      holder: holder.id,
    })
  })

  test('more than a thousand are one whole: a refused one stores nothing, the transaction is usable', async () => {
    const jobs = (bad: number) =>
      Array.from({ length: 3_000 }, (_, i) => note.with(i === bad ? Number.NaN : i))
    const kept = await client.transaction(async (tx) => {
      const before = await rowlock.in(tx).enqueue(note, 'before')
      for (const bad of [0, 1_500, 2_999]) {
        await expect(rowlock.in(tx).enqueueMany(jobs(bad))).rejects.toMatchObject({
          code: 'INPUT_NOT_STORABLE',
          index: bad,
        })
      }
      const after = await rowlock.in(tx).enqueue(note, 'after')
      return [before.id, after.id]
    })
    expect(
      (await db.sql('select id::text from rowlock.waiting w order by w.id')).map(({ id }) => id),
    ).toEqual(kept)
    const all = await client.transaction((tx) => rowlock.in(tx).enqueueMany(jobs(-1)))
    expect(all).toHaveLength(3_000)
    expect(await waiting()).toBe(3_002)
  })

  test('a refusal by the server in the middle of a large call is undone behind its savepoint', async () => {
    await db.sql(`alter table rowlock.waiting add constraint test_only check (input <> '2500')`)
    try {
      const work = client.transaction(async (tx) => {
        const jobs = Array.from({ length: 3_000 }, (_, i) => note.with(i))
        await expect(rowlock.in(tx).enqueueMany(jobs)).rejects.toMatchObject({ code: '23514' })
        await rowlock.in(tx).enqueue(note, 'after')
      })
      // postgres.js lets no transaction commit of which a statement failed, whatever its caller caught.
      if (name === 'postgres.js') await expect(work).rejects.toMatchObject({ code: '23514' })
      else await work
    } finally {
      await db.sql('alter table rowlock.waiting drop constraint test_only')
    }
    expect(await waiting()).toBe(name === 'postgres.js' ? 0 : 1)
  })

  test.each(['repeatable read', 'serializable'])(
    'under %s a job goes in, and what looks twice is refused',
    async (isolation) => {
      const { id } = await rowlock.enqueue(note, 0, { delay: '1h' })
      await client.transaction(async (tx) => {
        await rowlock.in(tx).enqueue(note, 1)
        await rowlock.in(tx).enqueue(note, 1, { dedupeKey: 'k' })
        expect(await rowlock.in(tx).enqueue(note, 1, { dedupeKey: 'k' })).toMatchObject({ created: false })
        await rowlock.in(tx).enqueueMany(Array.from({ length: 1_001 }, (_, i) => note.with(i)))
      }, isolation)
      expect(await waiting()).toBe(1_004)
      for (const verb of ['cancel', 'runNow', 'retry', 'redrive', 'discard'] as const) {
        const work = client.transaction<unknown>((tx) => rowlock.in(tx)[verb](id), isolation)
        expect([verb, await work.catch((error) => error.code)]).toEqual([verb, 'WRONG_ISOLATION'])
      }
      expect(await rowlock.job(id)).toMatchObject({ state: 'queued' })
    },
  )
})

test.each([
  ['nothing', undefined],
  ['null', null],
  ['what has no query()', {}],
  ['a tag of postgres.js', () => {}],
])('in() refuses %s', (_, wrong) => {
  expect(() => rowlock.in(wrong as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', path: 'tx' }),
  )
})

test('in() refuses a pool, whose statements are in no transaction together', () => {
  expect(() => rowlock.in(db.pool)).toThrow(/not a pool/)
})
