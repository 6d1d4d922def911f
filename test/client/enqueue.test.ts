// Putting jobs in through the client: one, many, in every form; what is refused, how, and that nothing is stored then.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type AnyRequest,
  createRowlock,
  defineJob,
  exponential,
  fixed,
  type Requests,
  type Rowlock,
} from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { failure } from './refused.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('client enqueue')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})
beforeEach(() => db.sql('truncate rowlock.waiting, rowlock.dedupe, rowlock.payload'))

const note = defineJob<unknown>('note')
const stored = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const inputs = async () =>
  (await db.sql('select input from rowlock.waiting order by id')).map((row: { input: unknown }) => row.input)

describe('one job', () => {
  test('is there when the call answers, due at once, with an id that is text', async () => {
    const { id, created } = await rowlock.enqueue(note, { to: 'ada' })
    expect(id).toMatch(/^[1-9]\d*$/)
    expect(created).toBe(true)
    expect(await rowlock.job(id)).toMatchObject({
      id,
      state: 'queued',
      queue: 'default',
      kind: 'note',
      priority: 0,
      attempt: 0,
      failures: 0,
      input: { to: 'ada' },
      attempts: [],
    })
  })

  test('a job that is not there is null', async () => {
    expect(await rowlock.job('999999999')).toBeNull()
  })

  test('with a dedupe key that a live job has answers that job', async () => {
    const first = await rowlock.enqueue(note, 1, { dedupeKey: 'k' })
    expect(await rowlock.enqueue(note, 2, { dedupeKey: 'k' })).toEqual({ id: first.id, created: false })
    expect(await inputs()).toEqual([1])
  })

  test('every option arrives in the row', async () => {
    const at = new Date('2030-01-31T12:00:00.000Z')
    const until = new Date('2030-02-01T12:00:00.000Z')
    const { id } = await rowlock.enqueue(note, null, {
      queue: 'erp',
      priority: -3,
      availableAt: at,
      expiresAt: until,
      tenantId: 'acme',
      dedupeKey: 'd',
      idempotencyKey: 'i',
      retry: { maxAttempts: 3, backoff: fixed('2s') },
      timeout: '90s',
      metadata: { trace: 'abc' },
    })
    expect(await rowlock.job(id)).toMatchObject({
      queue: 'erp',
      priority: -3,
      availableAt: at,
      expiresAt: until,
      tenantId: 'acme',
      dedupeKey: 'd',
      idempotencyKey: 'i',
      maxAttempts: 3,
      input: null,
      metadata: { trace: 'abc' },
    })
    const [row] = await db.sql('select backoff, timeout::text from rowlock.waiting where id = $1', [id])
    expect(row).toEqual({ backoff: { type: 'fixed', delay_ms: 2000 }, timeout: '00:01:30' })
  })

  test('delay and expiresIn count from now, by the clock of the database', async () => {
    const { id } = await rowlock.enqueue(note, 1, { delay: '10m', expiresIn: 3_600_000 })
    const [row] = await db.sql(
      `select extract(epoch from available_at - enqueued_at)::float as due,
              extract(epoch from expires_at - enqueued_at)::float as late from rowlock.waiting where id = $1`,
      [id],
    )
    expect(row).toEqual({ due: 600, late: 3600 })
  })

  test('takes what its definition says, and an option overrides it field by field', async () => {
    const job = defineJob<number>('defaults', {
      queue: 'mail',
      priority: 4,
      timeout: '30s',
      retry: { maxAttempts: 8, backoff: exponential({ min: '1s', max: '1h' }) },
    })
    const plain = await rowlock.enqueue(job, 1)
    const other = await rowlock.enqueue(job, 2, { queue: 'slow', priority: 0, retry: { maxAttempts: 2 } })
    const rows = await db.sql(
      'select id::text, queue, priority, max_attempts, backoff, timeout::text from rowlock.waiting w order by w.id',
    )
    const backoff = expect.objectContaining({ type: 'exponential', min_ms: 1000, max_ms: 3_600_000 })
    expect(rows).toEqual([
      { id: plain.id, queue: 'mail', priority: 4, max_attempts: 8, backoff, timeout: '00:00:30' },
      { id: other.id, queue: 'slow', priority: 0, max_attempts: 2, backoff, timeout: '00:00:30' },
    ])
  })

  test('that is large lies in payload and reads the same', async () => {
    const input = { text: 'é'.repeat(400_000) }
    const { id } = await rowlock.enqueue(note, input)
    expect((await rowlock.job(id))!.input).toEqual(input)
    expect(await db.value('select count(*)::integer from rowlock.payload')).toBe(1)
  })

  test('an instant long before there were time zones reads back, wherever the server is', async () => {
    const availableAt = new Date('0001-01-02T03:04:05.678Z')
    const { id } = await rowlock.enqueue(note, 1, { availableAt })
    const client = await db.session()
    await client.query("set timezone = 'Asia/Kathmandu'")
    expect((await rowlock.in(client).job(id))!.availableAt).toEqual(availableAt)
  })
})

describe('many jobs', () => {
  const requests = (n: number) => Array.from({ length: n }, (_, i) => note.with(i))
  const FORMS: [string, (n: number) => Requests][] = [
    ['an array', requests],
    ['a Set', (n) => new Set(requests(n))],
    [
      'a generator',
      function* (n) {
        yield* requests(n)
      },
    ],
    [
      'an async generator',
      async function* (n) {
        yield* requests(n)
      },
    ],
  ]
  test.each(FORMS)('come in as %s, all of them, in order', async (_, form) => {
    for (const n of [0, 1, 2, 1000, 1001, 2500]) {
      await db.sql('truncate rowlock.waiting')
      const results = await rowlock.enqueueMany(form(n))
      expect(results).toHaveLength(n)
      expect(results.every(({ created }) => created)).toBe(true)
      const rows = await db.sql('select id::text, input from rowlock.waiting w order by w.id')
      expect(rows).toEqual(results.map(({ id }, input) => ({ id, input })))
    }
  })

  test('100,000 are one transaction, and their ids rise in the order they came in', async () => {
    const results = await rowlock.enqueueMany(requests(100_000))
    expect(results).toHaveLength(100_000)
    const ids = results.map(({ id }) => BigInt(id))
    expect(ids.every((id, i) => i === 0 || id > ids[i - 1]!)).toBe(true)
    const [row] = await db.sql(
      `select count(*)::integer as jobs, count(distinct xmin::text)::integer as transactions,
              bool_and(input = to_jsonb(id - $1::bigint)) as in_order from rowlock.waiting`,
      [results[0]!.id],
    )
    expect(row).toEqual({ jobs: 100_000, transactions: 1, in_order: true })
  })

  const at = (bad: number, n: number) =>
    (function* () {
      for (let i = 0; i < n; i++) yield note.with(i === bad ? { deep: [1, { nul: 'a\0b' }] } : i)
    })()
  async function* late(jobs: Iterable<AnyRequest>) {
    yield* jobs
  }
  test.each([
    ['iterable', at],
    ['async iterable', (bad: number, n: number) => late(at(bad, n))],
  ] as const)(
    'the 54,321st of 60,000 from an %s is refused: none is stored, the error says which and where',
    async (_, form) => {
      const error = await failure(rowlock.enqueueMany(form(54_321, 60_000)))
      expect(error).toMatchObject({ code: 'INPUT_NOT_STORABLE', index: 54_321, path: 'deep[1].nul' })
      expect(error.message).toMatch(/^Job 54321: /)
      expect(await stored()).toBe(0)
    },
  )

  test.each([0, 999, 1000, 1001, 1999, 2000])(
    'the fault of job %i has its index, whatever batch it is in',
    async (bad) => {
      for (const length of [bad + 1, bad + 2, 3000]) {
        const error = await failure(rowlock.enqueueMany(at(bad, length)))
        expect([length, error.code, error.index]).toEqual([length, 'INPUT_NOT_STORABLE', bad])
      }
      expect(await stored()).toBe(0)
    },
  )

  test('more bytes than one statement takes are cut into several, of one transaction', async () => {
    const input = 'x'.repeat(3_000)
    const results = await rowlock.enqueueMany(Array.from({ length: 5_000 }, (_, i) => note.with([i, input])))
    expect(results).toHaveLength(5_000)
    const thousand = await rowlock.enqueueMany(
      Array.from({ length: 20 }, (_, i) => note.with([i, 'y'.repeat(900_000)])),
    )
    const [row] = await db.sql(
      `select count(*)::integer as jobs, count(distinct xmin::text)::integer as transactions
         from rowlock.waiting where id >= $1`,
      [thousand[0]!.id],
    )
    expect(row).toEqual({ jobs: 20, transactions: 1 })
    expect(
      await db.sql('select distinct count(*)::integer from rowlock.waiting group by xmin::text'),
    ).toContainEqual({
      count: 5_000,
    })
  })

  test('results stand at the place of their job, also of those that were there already', async () => {
    const there = await rowlock.enqueue(note, 'old', { dedupeKey: 'b' })
    const results = await rowlock.enqueueMany([
      note.with(0),
      note.with(1, { dedupeKey: 'a' }),
      note.with(2, { dedupeKey: 'b' }),
      note.with(3, { dedupeKey: 'a' }),
      note.with(4),
    ])
    expect(results.map(({ created }) => created)).toEqual([true, true, false, false, true])
    expect(results[2]!.id).toBe(there.id)
    expect(results[3]!.id).toBe(results[1]!.id)
    expect(await inputs()).toEqual(['old', 0, 1, 4])
  })

  test('duplicates in different statements of one call find each other', async () => {
    const jobs = Array.from({ length: 2_400 }, (_, i) => note.with(i, { dedupeKey: `k${i % 1_200}` }))
    const results = await rowlock.enqueueMany(jobs)
    expect(results.slice(0, 1_200).every(({ created }) => created)).toBe(true)
    expect(results.slice(1_200)).toEqual(results.slice(0, 1_200).map(({ id }) => ({ id, created: false })))
  })

  test('producers with the same few keys, against claims that end them, always get an id', async () => {
    const keys = Array.from({ length: 10 }, (_, n) => `k${n}`)
    const producer = async () => {
      const answers = []
      for (let round = 0; round < 60; round++) {
        answers.push(await rowlock.enqueue(note, round, { dedupeKey: keys[round % 10]! }))
      }
      return answers
    }
    let isDone = false
    const ender = (async () => {
      let ended = 0
      while (!isDone) {
        const ids = await db.sql('select id::text from rowlock.waiting')
        for (const { id } of ids) if ((await rowlock.cancel(id)) === 'cancelled') ended++
      }
      return ended
    })()
    const answers = (await Promise.all(Array.from({ length: 4 }, producer))).flat()
    isDone = true
    expect(await ender).toBeGreaterThan(0)
    expect(
      answers.filter((answer) => !/^\d+$/.test(answer.id) || typeof answer.created !== 'boolean'),
    ).toEqual([])
  })

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'abc'],
    ['a number', 5],
    ['one request', note.with(1)],
    ['a function', () => []],
  ])('as %s is refused with what it takes', async (_, wrong) => {
    expect(await failure(rowlock.enqueueMany(wrong as never))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'jobs',
    })
  })

  test.each([
    ['a definition without with()', note],
    ['nothing', undefined],
    ['a look-alike', { definition: { kind: 'note', queue: 'default' }, input: 1 }],
  ])('among which is %s are refused with its index', async (_, wrong) => {
    expect(await failure(rowlock.enqueueMany([note.with(1), wrong as never]))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'job',
      index: 1,
    })
    expect(await stored()).toBe(0)
  })

  test('a source that throws is heard as it threw, and nothing is stored: its lost socket is not ours', async () => {
    for (const after of [0, 10, 1_500, 3_500]) {
      const own = Object.assign(new Error('socket timeout: connection terminated'), { code: 'ECONNRESET' })
      const source = (async function* () {
        yield* requests(after)
        throw own
      })()
      expect(await rowlock.enqueueMany(source).catch((error) => error)).toBe(own)
    }
    expect(await stored()).toBe(0)
  })

  test('a source that is not gone through to its end is told, so that it can close what it reads', async () => {
    for (const bad of [5, 1_500, 2_500]) {
      let isClosed = false
      const source = (async function* () {
        try {
          yield* at(bad, 10_000)
        } finally {
          isClosed = true
        }
      })()
      await failure(rowlock.enqueueMany(source))
      expect([bad, isClosed]).toEqual([bad, true])
    }
  })
})

describe('a job of another kind of value', () => {
  test.each([
    ['nothing', undefined],
    ['a kind', 'note'],
    ['a request', note.with(1)],
  ])('%s is refused by enqueue', async (_, wrong) => {
    expect(await failure(rowlock.enqueue(wrong as never, 1 as never))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'job',
    })
  })

  test.each(['', '0', '-1', '1.5', 'abc', '9223372036854775808', 5, null, undefined, Symbol('x'), {}])(
    '%s is no id: every verb rejects, none throws',
    async (id) => {
      for (const verb of ['cancel', 'runNow', 'redrive', 'discard', 'retry', 'job'] as const) {
        const answer = rowlock[verb](id as never)
        expect(await failure(answer)).toMatchObject({ code: 'INVALID_OPTION', path: 'id' })
      }
    },
  )
})
