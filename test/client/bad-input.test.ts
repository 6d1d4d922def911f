// Bad input is refused alike on every path: alone, among many, in the caller's transaction, and from SQL.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
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
