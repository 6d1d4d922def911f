// Putting jobs in from SQL: what is refused and how, what is stored and read back, in whose transaction.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/ground/limits.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, held, refusal, register, verb } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('enqueue')
})
afterAll(() => db.drop())

const count = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const fault = (job: unknown) => db.value('select rowlock.job_fault($1)', [JSON.stringify(job)])
const job = (more: Record<string, unknown>) => ({ kind: 'k', input: {}, ...more })

test('a job enqueued from SQL is there, due at once', async () => {
  const [row] = await db.sql(`select * from rowlock.enqueue('mail', '{"to":"a"}')`)
  expect(row.created).toBe(true)
  const [job] = await db.sql('select * from rowlock.job where id = $1', [row.id])
  expect(job).toMatchObject({
    state: 'queued',
    queue: 'default',
    kind: 'mail',
    input: { to: 'a' },
    attempt: 0,
  })
})

test('every option is stored as it was given', async () => {
  const options = {
    queue: 'erp',
    priority: -3,
    available_at: '2030-01-31T12:00:00Z',
    expires_at: '2030-02-01T12:00:00Z',
    tenant_id: 'acme',
    dedupe_key: 'd',
    idempotency_key: 'i',
    max_attempts: 3,
    backoff: { type: 'list', delays_ms: [1, 2] },
    timeout: '90 s',
    metadata: { trace: 'abc' },
  }
  const id = await enqueue(db, options)
  const [row] = await db.sql(
    `select *, extract(epoch from timeout)::integer as timeout_s from rowlock.job where id = $1`,
    [id],
  )
  const { timeout, available_at, expires_at, ...same } = options
  expect(row).toMatchObject({ ...same, timeout_s: 90, state: 'queued' })
  expect(row.available_at.toISOString()).toBe('2030-01-31T12:00:00.000Z')
  expect(row.expires_at.toISOString()).toBe('2030-02-01T12:00:00.000Z')
})

test('delay and expires_in count from now, by the clock of the database', async () => {
  const id = await enqueue(db, { delay: '10 minutes', expires_in: '1 hour' })
  const [row] = await db.sql(
    `select extract(epoch from available_at - enqueued_at)::float as due,
            extract(epoch from expires_at - enqueued_at)::float as late
       from rowlock.job where id = $1`,
    [id],
  )
  expect(row).toEqual({ due: 600, late: 3600 })
})

describe('a fault', () => {
  const CASES: [string, unknown, string, RegExp][] = [
    ['no object', 7, '', /object with kind and input/],
    ['an array', [], '', /object with kind and input/],
    ['no kind', { input: {} }, 'kind', /must be a string/],
    ['null kind', { kind: null, input: {} }, 'kind', /must be a string/],
    ['no input', { kind: 'k' }, 'input', /is missing/],
    ['a slip', job({ queu: 'a' }), 'queu', /unknown option; did you mean queue\?/],
    ['camel case', job({ dedupeKey: 'a' }), 'dedupeKey', /did you mean dedupe_key\?/],
    ['short form', job({ tenant: 'a' }), 'tenant', /did you mean tenant_id\?/],
    ['nothing near', job({ xyzzy: 1 }), 'xyzzy', /unknown option$/],
    ['empty queue', job({ queue: '' }), 'queue', /1 to 100 bytes/],
    ['a number as key', job({ dedupe_key: 5 }), 'dedupe_key', /must be a string/],
    ['control characters', job({ queue: 'a\nb' }), 'queue', /no control characters/],
    ['blanks', job({ tenant_id: ' a' }), 'tenant_id', /no blanks at its ends/],
    ['a fraction', job({ priority: 1.5 }), 'priority', /whole number/],
    ['a number as text', job({ priority: '1' }), 'priority', /whole number/],
    ['far priority', job({ priority: 11 }), 'priority', /-10 to 10/],
    ['2^53', job({ max_attempts: 2 ** 53 }), 'max_attempts', /1 to 100/],
    ['no attempt', job({ max_attempts: 0 }), 'max_attempts', /1 to 100/],
    ['no interval', job({ delay: 'soon' }), 'delay', /must be an interval/],
    ['ms as number', job({ delay: 5000 }), 'delay', /must be an interval/],
    ['a delay back', job({ delay: '-1 s' }), 'delay', /0 to 3,650 days/],
    ['for ever', job({ expires_in: '1000000 years' }), 'expires_in', /must be|0 to 3,650/],
    ['no time', job({ timeout: '9 ms' }), 'timeout', /10 ms to 7 days/],
    ['no instant', job({ available_at: 'when it suits' }), 'available_at', /must be an instant/],
    ['infinity', job({ available_at: 'infinity' }), 'available_at', /next ten years/],
    ['before our time', job({ available_at: '4713-01-01 BC' }), 'available_at', /next ten years/],
    ['epoch ms', job({ expires_at: 1893456000000 }), 'expires_at', /must be an instant/],
    ['both', job({ delay: '1 s', available_at: '2030-01-01' }), 'delay', /exclude each other/],
    ['both', job({ expires_in: '1 s', expires_at: '2030-01-01' }), 'expires_in', /exclude each other/],
    ['no policy', job({ backoff: 5 }), 'backoff', /object with a type/],
    ['unknown policy', job({ backoff: { type: 'linear' } }), 'backoff', /exponential, fixed or list/],
    ['no delay', job({ backoff: { type: 'fixed' } }), 'backoff', /delay_ms/],
    ['null delay', job({ backoff: { type: 'fixed', delay_ms: null } }), 'backoff', /delay_ms/],
    ['null in a list', job({ backoff: { type: 'list', delays_ms: [null] } }), 'backoff', /delays_ms/],
    ['foreign field', job({ backoff: { type: 'fixed', delay_ms: 1, max_ms: 2 } }), 'backoff', /delay_ms/],
    [
      'wrong way',
      job({ backoff: { type: 'exponential', min_ms: 9, max_ms: 8 } }),
      'backoff',
      /min_ms <= max_ms/,
    ],
    ['no number', job({ backoff: { type: 'fixed', delay_ms: 'x' } }), 'backoff', /no number/],
    ['listed metadata', job({ metadata: [1] }), 'metadata', /must be an object/],
    ['large metadata', job({ metadata: { a: 'x'.repeat(7000) } }), 'metadata', /4,096 bytes/],
  ]
  test.each(CASES)('%s: %j', async (_, broken, path, message) => {
    const before = await count()
    const found = await refusal(
      db.sql('select rowlock.enqueue_many($1)', [JSON.stringify([job({}), broken])]),
    )
    expect(found).toMatchObject({ code: 'RL001', detail: { path, index: 1 } })
    expect(found.message).toMatch(message)
    expect(await count()).toBe(before)
  })

  test('an input beyond its limit is RL003', async () => {
    const broken = job({ input: 'x'.repeat(1_600_000) })
    expect(await refusal(enqueueMany(db, [broken]))).toMatchObject({
      code: 'RL003',
      detail: { path: 'input', index: 0 },
    })
  })

  test('one bad job of a thousand is named, and none is stored', async () => {
    const before = await count()
    const jobs = Array.from({ length: 1000 }, (_, n) => (n === 500 ? { priority: 99 } : {}))
    expect(await refusal(enqueueMany(db, jobs))).toMatchObject({
      code: 'RL001',
      detail: { path: 'priority', index: 500 },
    })
    expect(await count()).toBe(before)
  })

  test('of the call itself is refused with a path', async () => {
    const jobs = Array.from({ length: LIMITS.jobsPerCall.max + 1 }, () => ({}))
    expect(await refusal(enqueueMany(db, jobs))).toMatchObject({ code: 'RL001', detail: { path: 'jobs' } })
    for (const text of [
      'select rowlock.enqueue_many(null)',
      `select rowlock.enqueue_many('{}')`,
      `select rowlock.enqueue('k', '{}', '[]')`,
      `select rowlock.enqueue('k', '{}', '{"kind":"j"}')`,
      `select rowlock.enqueue(null)`,
    ]) {
      expect([text, await db.refusal(text)]).toEqual([text, 'RL001'])
    }
  })

  test('a NUL never comes as far as the queue', async () => {
    expect(await db.refusal(`select rowlock.enqueue('k', '{"a":"\\u0000"}')`)).toBe('22P05')
  })
})

describe('bounds are those of the table of limits', () => {
  const bytes = (n: number) => 'x'.repeat(n)
  // PostgreSQL 14 reads no more than 2^31 ms as ms.
  const ms = (n: number) => `${n / 1000} s`
  const BOUNDS: [string, { min?: number; max?: number }, (n: number) => Record<string, unknown>][] = [
    ['kind', LIMITS.nameBytes, (n) => ({ kind: bytes(n) })],
    ['queue', LIMITS.nameBytes, (n) => ({ queue: bytes(n) })],
    ['tenant_id', LIMITS.tenantBytes, (n) => ({ tenant_id: bytes(n) })],
    ['dedupe_key', LIMITS.keyBytes, (n) => ({ dedupe_key: bytes(n) })],
    ['idempotency_key', LIMITS.keyBytes, (n) => ({ idempotency_key: bytes(n) })],
    ['priority', LIMITS.priority, (n) => ({ priority: n })],
    ['max_attempts', LIMITS.maxAttempts, (n) => ({ max_attempts: n })],
    ['delay', LIMITS.delayMs, (n) => ({ delay: ms(n) })],
    ['expires_in', LIMITS.delayMs, (n) => ({ expires_in: ms(n) })],
    ['timeout', LIMITS.timeoutMs, (n) => ({ timeout: ms(n) })],
    ['backoff', LIMITS.backoffMaxMs, (n) => ({ backoff: { type: 'fixed', delay_ms: n } })],
    [
      'backoff',
      LIMITS.backoffMinMs,
      (n) => ({ backoff: { type: 'exponential', min_ms: n, max_ms: 2592000000 } }),
    ],
    ['backoff', LIMITS.backoffFactor, (n) => ({ backoff: { type: 'exponential', factor: n } })],
    [
      'backoff',
      LIMITS.backoffSteps,
      (n) => ({ backoff: { type: 'list', delays_ms: Array.from({ length: n }, () => 1) } }),
    ],
  ]
  test.each(BOUNDS)('%s %o', async (path, { min, max }, make) => {
    expect(await fault(job(make(max!)))).toBeNull()
    expect(await fault(job(make(max! + 1)))).toMatchObject({ path })
    expect(await fault(job(make(min!)))).toBeNull()
    expect(await fault(job(make(min! - 1)))).toMatchObject({ path })
  })

  test('bytes are counted, not characters', async () => {
    expect(await fault(job({ queue: 'ü'.repeat(50) }))).toBeNull()
    expect(await fault(job({ queue: 'ü'.repeat(51) }))).toMatchObject({ path: 'queue' })
  })

  test('a whole number may be written with a fraction of nothing', async () => {
    const { rows } = await db.pool.query(
      `select rowlock.enqueue_many('[{"kind":"k","input":{},"priority":2.0,"max_attempts":5.00}]') as reply`,
    )
    const [row] = await db.sql('select priority, max_attempts from rowlock.job where id = $1', [
      rows[0].reply.ids[0],
    ])
    expect(row).toEqual({ priority: 2, max_attempts: 5 })
  })
})

describe('an input', () => {
  const read = (id: string) =>
    db.value(
      'select row_to_json(j) from (select input, jsonb_typeof(input) as type from rowlock.job where id = $1) as j',
      [id],
    )

  test.each([
    ['null', 'null'],
    ['"{\\"a\\":1}"', 'string'],
    ['5', 'number'],
    ['true', 'boolean'],
    ['[1,[2]]', 'array'],
    ['{}', 'object'],
  ])('%s stays what it was, in one call and in many, waiting, running and done', async (json, type) => {
    const one = await db.value('select id from rowlock.enqueue($1, $2)', ['odd', json])
    const many = (await enqueueMany(db, [{ kind: 'odd', input: JSON.parse(json) }])).ids[0]!
    const expected = { input: JSON.parse(json), type }
    for (const id of [one, many]) expect(await read(id)).toEqual(expected)
    const hand = await register(db)
    const { jobs } = await hand.claim({ kinds: ['odd'] })
    expect(jobs.map(({ input }) => input)).toEqual([expected.input, expected.input])
    expect(await read(one)).toEqual(expected)
    await verb(
      db,
      'complete',
      jobs.map((claimed) => held(claimed, { result: JSON.parse(json) })),
    )
    expect(await read(one)).toEqual(expected)
    const result = await db.value('select result from rowlock.job where id = $1', [one])
    expect(result).toEqual(JSON.parse(json))
  })

  test('SQL null is JSON null', async () => {
    const id = await db.value(`select id from rowlock.enqueue('k', null, null)`)
    expect(await read(id)).toEqual({ input: null, type: 'null' })
  })

  test('above 4 kB is written once, beside the job, and reads the same', async () => {
    const sizes = [100, 3900, 3950, 3960, 4100, 20_000, 900_000]
    const inputs = sizes.map((size) => ({ text: 'x'.repeat(size - 20), size }))
    const { ids } = await enqueueMany(
      db,
      inputs.map((input) => ({ kind: 'large', input })),
    )
    for (const [n, id] of ids.entries()) expect((await read(id)).input).toEqual(inputs[n])
    const aside = await db.sql(
      'select job_id as id from rowlock.payload where job_id = any ($1) order by 1',
      [ids],
    )
    expect(aside.map(({ id }) => id)).toEqual(ids.slice(4))
    const { jobs } = await (await register(db)).claim({ kinds: ['large'] })
    expect(jobs.map(({ input }) => input)).toEqual([...inputs.slice(0, 4), null, null, null])
  })

  test('that is large and whose key is taken leaves nothing behind', async () => {
    const input = 'x'.repeat(9000)
    const stored = () => db.value<number>('select count(*)::integer from rowlock.payload')
    const before = await stored()
    const { ids, existing } = await enqueueMany(db, [
      { input, dedupe_key: 'large' },
      { input, dedupe_key: 'large' },
      { input },
    ])
    expect(existing).toEqual([1])
    expect(ids[0]).toBe(ids[1])
    expect((await stored()) - before).toBe(2)
  })
})

describe('in the caller’s transaction', () => {
  test('a job exists when it commits, and only then', async () => {
    const session = await db.session()
    await session.query('begin')
    const { ids } = await enqueueMany(db, [{}], session)
    expect(await db.refusal('select rowlock.state_of($1)', ids)).toBe('RL010')
    await session.query('rollback')
    expect(await db.refusal('select rowlock.state_of($1)', ids)).toBe('RL010')
    await session.query('begin')
    const kept = (await enqueueMany(db, [{}], session)).ids
    await session.query('commit')
    expect(await db.value('select rowlock.state_of($1)', kept)).toBe('queued')
  })

  test('a trigger of the user’s table enqueues with the row, and not without it', async () => {
    await db.sql('create table invoice (number integer primary key)')
    await db.sql(`create function invoice_changed() returns trigger language plpgsql as $$
      begin
        perform rowlock.enqueue('sync-invoice', jsonb_build_object('number', new.number),
          jsonb_build_object('dedupe_key', new.number::text));
        return new;
      end $$`)
    await db.sql(
      'create trigger sync after insert or update on invoice for each row execute function invoice_changed()',
    )
    const jobs = () =>
      db.sql(`select input ->> 'number' as number from rowlock.job where kind = 'sync-invoice' order by id`)
    const session = await db.session()
    await session.query('begin; insert into invoice values (1); rollback')
    expect(await jobs()).toEqual([])
    await session.query(
      'begin; insert into invoice values (1), (2); update invoice set number = number; commit',
    )
    expect(await jobs()).toEqual([{ number: '1' }, { number: '2' }])
  })

  test.each(['repeatable read', 'serializable'])('%s is as good as any', async (isolation) => {
    const session = await db.session()
    await session.query(`begin isolation level ${isolation}`)
    const { ids } = await enqueueMany(db, [{}, { dedupe_key: isolation }], session)
    await session.query('commit')
    expect(ids).toHaveLength(2)
  })
})

describe('the answer', () => {
  const large = 'x'.repeat(5000)
  test.each([
    ['plain', () => ({})],
    ['keyed', (n: number) => ({ dedupe_key: `ordered ${n}` })],
    ['large', (n: number) => (n % 2 === 0 ? { input: large } : {})],
    ['of several queues', (n: number) => ({ queue: `q${(n * 7) % 10}` })],
  ])('names one id for each job, in order: %s', async (_, more) => {
    const jobs = Array.from({ length: LIMITS.jobsPerCall.max }, (_, n) => ({ metadata: { n }, ...more(n) }))
    const { ids, existing } = await enqueueMany(db, jobs)
    expect(existing).toEqual([])
    const rows = await db.sql(
      `select metadata ->> 'n' as n from rowlock.job where id = any ($1) order by id`,
      [ids],
    )
    expect(rows.map(({ n }) => Number(n))).toEqual(jobs.map((_, n) => n))
    expect([...ids].sort((a, b) => Number(a) - Number(b))).toEqual(ids)
  })

  test('to no jobs is empty', async () => {
    expect(await enqueueMany(db, [])).toEqual({ ids: [], existing: [] })
  })
})
