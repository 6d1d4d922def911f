// Putting jobs in through the client: one, many, in every form; what is refused, how, and that nothing is stored then.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type AnyRequest,
  createRowlock,
  defineJob,
  exponential,
  fixed,
  type Requests,
  type Rowlock,
  type RowlockError,
} from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

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

async function failure(work: Promise<unknown>): Promise<RowlockError> {
  const outcome = await work.then(
    (value) => ({ value }),
    (error: RowlockError) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error(`it was not refused: ${JSON.stringify(outcome)}`)
}

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

describe('a schema', () => {
  const mail = defineJob('mail', {
    input: z.object({ to: z.email(), at: z.coerce.date(), template: z.string().default('welcome') }),
  })

  test('is asked about the JSON, and what it makes of it is not stored', async () => {
    const { id } = await rowlock.enqueue(mail, {
      to: 'ada@example.org',
      at: new Date('2030-01-01T00:00:00Z'),
    })
    expect((await rowlock.job(id))!.input).toEqual({ to: 'ada@example.org', at: '2030-01-01T00:00:00.000Z' })
  })

  test('that refuses says what and where; alone without an index, among others with it', async () => {
    const bad = { to: 'nobody', at: 'x' } as never
    const alone = await failure(rowlock.enqueue(mail, bad))
    expect(alone).toMatchObject({ code: 'INPUT_REFUSED', issues: [{ path: ['to'] }, { path: ['at'] }] })
    expect(alone.index).toBeUndefined()
    expect(alone.message).toMatch(/^The input of "mail" was refused/)
    const good = mail.with({ to: 'ada@example.org', at: 0 })
    expect(await failure(rowlock.enqueueMany([good, mail.with(bad)]))).toMatchObject({
      code: 'INPUT_REFUSED',
      index: 1,
      issues: [{ path: ['to'] }, { path: ['at'] }],
    })
    expect(await failure(rowlock.enqueueMany([mail.with(bad)]))).toMatchObject({ index: 0 })
    expect(await stored()).toBe(0)
  })

  test('may answer later', async () => {
    const slow = defineJob('slow', { input: z.number().refine(async (n) => n > 0, 'must be above 0') })
    await rowlock.enqueueMany([slow.with(1), note.with('x'), slow.with(2)])
    expect(await inputs()).toEqual([1, 'x', 2])
    expect(await failure(rowlock.enqueueMany([slow.with(1), slow.with(-1)]))).toMatchObject({
      code: 'INPUT_REFUSED',
      index: 1,
    })
    expect(await stored()).toBe(3)
  })
})

describe('middleware', () => {
  const fresh = () => createRowlock({ pool: db.pool })

  test('wraps each statement, the first one added outermost, and may replace what is stored', async () => {
    const seen: string[] = []
    const client = fresh()
      .use(async (context, next) => {
        seen.push(`a ${context.requests.length} ${context.inTransaction}`)
        return next()
      })
      .use(async (context, next) => {
        context.requests = context.requests.map((request) => ({ ...request, input: 'hidden' }))
        const results = await next()
        seen.push(`b ${results.length}`)
        return results
      })
    await client.enqueue(note, 'secret')
    const session = await db.session()
    await session.query('begin')
    await client.in(session).enqueueMany([note.with(1), note.with(2)])
    await session.query('commit')
    expect(seen).toEqual(['a 1 false', 'b 1', 'a 2 true', 'b 2'])
    expect(await inputs()).toEqual(['hidden', 'hidden', 'hidden'])
  })

  test('that forgets the answer, or drops a job, is refused', async () => {
    const forgets = fresh().use((async (_: unknown, next: () => Promise<unknown>) => {
      await next()
    }) as never)
    expect(await failure(forgets.enqueue(note, 1))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'middleware',
    })
    await db.sql('truncate rowlock.waiting')
    const drops = fresh().use(async (context, next) => {
      context.requests = []
      return next()
    })
    expect(await failure(drops.enqueue(note, 1))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'middleware',
    })
    expect(await stored()).toBe(0)
  })

  test('whose own error speaks of a timeout is heard as it threw', async () => {
    const own = new Error('timeout of the tracer: socket closed')
    const client = fresh().use(async () => Promise.reject(own))
    expect(await client.enqueue(note, 1).catch((error) => error)).toBe(own)
    expect(
      await client.enqueueMany(Array.from({ length: 1_500 }, () => note.with(1))).catch((error) => error),
    ).toBe(own)
  })
})

describe('bad input is refused alike on every path', () => {
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const INPUTS: [string, unknown, string, string][] = [
    ['NUL', { a: { b: ['x', 'a\0b'] } }, 'INPUT_NOT_STORABLE', 'a.b[1]'],
    ['NUL in a key', { a: { 'b\0': 1 } }, 'INPUT_NOT_STORABLE', 'a["b\\u0000"]'],
    ['half of a character', { cut: '😀'.slice(0, 1) }, 'INPUT_NOT_STORABLE', 'cut'],
    ['a BigInt', { n: 2n ** 63n }, 'INPUT_NOT_STORABLE', 'n'],
    ['a function', { f: () => 1 }, 'INPUT_NOT_STORABLE', 'f'],
    ['a symbol', { s: Symbol('x') }, 'INPUT_NOT_STORABLE', 's'],
    ['a cycle', cyclic, 'INPUT_NOT_STORABLE', 'self'],
    ['NaN', [1, Number.NaN], 'INPUT_NOT_STORABLE', '[1]'],
    ['Infinity', { n: Number.POSITIVE_INFINITY }, 'INPUT_NOT_STORABLE', 'n'],
    ['undefined', undefined, 'INPUT_NOT_STORABLE', ''],
    ['undefined in an array', [undefined], 'INPUT_NOT_STORABLE', '[0]'],
    ['an invalid date', { at: new Date('x') }, 'INPUT_NOT_STORABLE', 'at'],
    ['a Map', { map: new Map() }, 'INPUT_NOT_STORABLE', 'map'],
    ['a Buffer', { data: Buffer.from('x') }, 'INPUT_NOT_STORABLE', 'data'],
    ['more than a megabyte', { text: 'x'.repeat(1_000_001) }, 'INPUT_TOO_LARGE', undefined as never],
  ]
  const OPTIONS: [string, object, string, RegExp][] = [
    ['a slip', { priorty: 1 }, 'priorty', /did you mean 'priority'\?/],
    ['the word of SQL', { dedupe_key: 'k' }, 'dedupe_key', /did you mean 'dedupeKey'\?/],
    ['a fraction', { priority: 1.5 }, 'priority', /whole number/],
    ['a far priority', { priority: 11 }, 'priority', /-10 to 10/],
    ['a smallint too far', { priority: 32768 }, 'priority', /-10 to 10/],
    ['NaN', { priority: Number.NaN }, 'priority', /whole number/],
    ['no attempt', { retry: { maxAttempts: 0 } }, 'retry.maxAttempts', /from 1 to 100/],
    ['2^53 attempts', { retry: { maxAttempts: 2 ** 53 } }, 'retry.maxAttempts', /from 1 to 100/],
    ['a slip inside', { retry: { maxAtempts: 3 } }, 'retry.maxAtempts', /did you mean 'maxAttempts'\?/],
    ['a delay back', { delay: -1 }, 'delay', /delay/],
    ['a delay in an unknown unit', { delay: '30x' }, 'delay', /delay/],
    ['a delay of centuries', { delay: 2 ** 53 }, 'delay', /delay/],
    ['a timeout of 5 ms', { timeout: 5 }, 'timeout', /timeout/],
    ['an invalid date', { availableAt: new Date('x') }, 'availableAt', /valid Date/],
    ['a number for a date', { expiresAt: 5 }, 'expiresAt', /valid Date/],
    ['both', { delay: 1, availableAt: new Date() }, 'availableAt', /not both/],
    ['an empty key', { dedupeKey: '' }, 'dedupeKey', /not be empty/],
    ['a long key', { dedupeKey: 'é'.repeat(257) }, 'dedupeKey', /512 bytes/],
    ['NUL in a key', { dedupeKey: 'a\0' }, 'dedupeKey', /control character/],
    ['a number as tenant', { tenantId: 7 }, 'tenantId', /must be a string/],
    ['a long queue', { queue: 'q'.repeat(101) }, 'queue', /100 bytes/],
    ['listed metadata', { metadata: [1] }, 'metadata', /plain object/],
    ['large metadata', { metadata: { a: 'x'.repeat(5_000) } }, 'metadata', /metadata/],
    ['null as options', null as never, '', /options/],
  ]

  type Path = (input: unknown, options?: object) => Promise<unknown>
  const good = note.with('good')
  const inTransaction = async (work: (client: import('pg').Client) => Promise<unknown>) => {
    const client = await db.session()
    await client.query('begin')
    try {
      return await work(client)
    } finally {
      expect((await client.query('select 1 as usable')).rows).toEqual([{ usable: 1 }])
      await client.query('commit')
      await client.end()
    }
  }
  const many = (input: unknown, options?: object) => [good, good, note.with(input, options)]
  const PATHS: [string, Path, number | undefined][] = [
    ['enqueue', (input, options) => rowlock.enqueue(note, input, options), undefined],
    ['enqueueMany', (input, options) => rowlock.enqueueMany(many(input, options)), 2],
    [
      'in(tx).enqueue',
      (input, options) => inTransaction((tx) => rowlock.in(tx).enqueue(note, input, options)),
      undefined,
    ],
    [
      'in(tx).enqueueMany',
      (input, options) => inTransaction((tx) => rowlock.in(tx).enqueueMany(many(input, options))),
      2,
    ],
  ]
  for (const [path, put, index] of PATHS) {
    test.each(INPUTS)(`${path}: %s`, async (_, input, code, where) => {
      const error = await failure(put(input))
      expect([error.code, error.path, error.index]).toEqual([code, where, index])
      expect(await stored()).toBe(0)
    })
    test.each(OPTIONS)(`${path}: options: %s`, async (_, options, where, message) => {
      const error = await failure(put({}, options))
      expect([error.code, error.path ?? '', error.index]).toEqual([
        where === 'metadata' && /5,000|large/.test(_) ? 'INPUT_TOO_LARGE' : 'INVALID_OPTION',
        where,
        index,
      ])
      expect(error.message).toMatch(message)
      expect(await stored()).toBe(0)
    })
  }

  const SQL: [string, object, string, string][] = [
    ['a slip', { priorty: 1 }, 'RL001', 'priorty'],
    ['a fraction', { priority: 1.5 }, 'RL001', 'priority'],
    ['a smallint too far', { priority: 32768 }, 'RL001', 'priority'],
    ['2^53 attempts', { max_attempts: 2 ** 53 }, 'RL001', 'max_attempts'],
    ['a delay back', { delay: '-1 s' }, 'RL001', 'delay'],
    ['a long key', { dedupe_key: 'é'.repeat(257) }, 'RL001', 'dedupe_key'],
    ['listed metadata', { metadata: [1] }, 'RL001', 'metadata'],
  ]
  test.each(SQL)('SQL: %s', async (_, options, code, path) => {
    const job = { kind: 'note', input: {} }
    const one = () => db.sql(`select * from rowlock.enqueue('note', '{}', $1)`, [JSON.stringify(options)])
    const two = () =>
      db.sql('select rowlock.enqueue_many($1)', [JSON.stringify([job, { ...job, ...options }])])
    for (const [work, index] of [
      [one, 0],
      [two, 1],
    ] as const) {
      const error = (await failure(work())) as unknown as { code: string; detail: string }
      expect([error.code, JSON.parse(error.detail)]).toEqual([code, { path, index }])
    }
    expect(await stored()).toBe(0)
  })

  test('SQL: what no jsonb can be is refused by the server before Rowlock sees it', async () => {
    for (const text of [`'{"a":"\\u0000"}'`, `'{"a":"\\ud83d"}'`, `'{"a":1e200000}'`, `'{"a":NaN}'`]) {
      expect(await db.refusal(`select rowlock.enqueue('note', ${text})`)).toMatch(/^22/)
    }
    expect(await stored()).toBe(0)
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
