// The promises that the ground floor makes about SQL, held against PostgreSQL itself.
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Backoff, backoffMs, exponential, fixed, list } from '../../src/ground/backoff.ts'
import { defineJob, type EnqueueOptions } from '../../src/ground/job.ts'
import { toStorableJson } from '../../src/ground/json.ts'
import { toWire, type Wire } from '../../src/ground/request.ts'
import { describeThrown } from '../../src/ground/thrown.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { refusal } from './refusal.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase()
})
afterAll(() => db?.drop())

const SEED = Date.now() & 0x7fffffff
const sample = <T>(values: fc.Arbitrary<T>, numRuns: number) => fc.sample(values, { numRuns, seed: SEED })
beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(`the seed was ${SEED}`)))

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.nat(0xffff), { maxLength: 5 }).map((units) => String.fromCharCode(...units)),
)
const anything = fc.anything({
  key: text,
  values: [text, fc.double(), fc.boolean(), fc.constant(null)],
  withDate: true,
})

/** Every one of these texts as jsonb and back, in order. */
async function throughJsonb(texts: string[]): Promise<unknown[]> {
  const query = 'select t::jsonb::text as json from unnest($1::text[]) with ordinality as u (t, n) order by n'
  const rows = await db.sql<{ json: string }>(query, [texts])
  return rows.map(({ json }) => JSON.parse(json))
}

describe('what the ground floor lets through', () => {
  it('is taken by jsonb and comes back equal', async () => {
    const texts: string[] = []
    for (const value of sample(fc.oneof(anything, fc.double(), text), 2000)) {
      refusal(() => texts.push(toStorableJson(value, { maxBytes: 1e6, what: 'input' }).json), 'may pass')
    }
    expect(texts.length).toBeGreaterThan(500)
    expect(await throughJsonb(texts)).toEqual(texts.map((json) => JSON.parse(json)))
  })

  it('is taken by jsonb at its greatest depth and at the ends of its numbers', async () => {
    const deep = JSON.parse('['.repeat(500) + ']'.repeat(500))
    const values = [
      deep,
      Number.MAX_VALUE,
      -Number.MAX_VALUE,
      Number.MIN_VALUE,
      Number.EPSILON,
      2 ** 53,
      1e21,
    ]
    const texts = values.map((value) => toStorableJson(value, { maxBytes: 1e6, what: 'input' }).json)
    expect(await throughJsonb(texts)).toEqual(values)
  })

  it('is taken by jsonb when it was thrown, whatever it was', async () => {
    const thrown = fc
      .sample(fc.oneof(anything, text), 500)
      .flatMap((value) => [
        value,
        Object.assign(new Error(String.fromCharCode(0, 0xd800)), { code: value, cause: value }),
      ])
    const texts = thrown.map((value) => JSON.stringify(describeThrown(value)))
    expect(await throughJsonb(texts)).toEqual(texts.map((json) => JSON.parse(json)))
  })
})

describe('a request', () => {
  const store = async (options?: EnqueueOptions) => {
    const job = defineJob('plain', { timeout: '1m' })
    const wire = toWire(job.with({ a: ['é', '\\u0000'] }, options)) as Wire
    expect(await db.value('select rowlock.job_fault($1::jsonb)', [wire.job])).toBeNull()
    const stored = await db.value<{ ids: string[] }>('select rowlock.store($1::jsonb, $2, false)', [
      `[${wire.job}]`,
      wire.keyed,
    ])
    const [row] = await db.sql('select to_jsonb(w) as job from rowlock.waiting w where id = $1', [
      stored.ids[0],
    ])
    return row.job
  }

  it('arrives in SQL with every option that was set', async () => {
    const job = await store({
      queue: 'email',
      priority: -3,
      delay: '1500ms',
      expiresIn: '1h',
      tenantId: 'acme',
      dedupeKey: 'invoice:42',
      idempotencyKey: 'once',
      retry: { maxAttempts: 3, backoff: list(['1s', '5s']) },
      timeout: '12.345s',
      metadata: { trace: 'é' },
    })
    expect(job).toMatchObject({
      kind: 'plain',
      queue: 'email',
      priority: -3,
      tenant_id: 'acme',
      dedupe_key: 'invoice:42',
      idempotency_key: 'once',
      max_attempts: 3,
      backoff: { type: 'list', delays_ms: [1000, 5000] },
      timeout: '00:00:12.345',
      metadata: { trace: 'é' },
      input: { a: ['é', '\\u0000'] },
    })
    const after = (at: string) => Date.parse(at) - Date.parse(job.enqueued_at)
    expect([after(job.available_at), after(job.expires_at)]).toEqual([1500, 3_600_000])
  })

  it('arrives with its instants, and with what its definition says', async () => {
    const availableAt = new Date('2030-01-31T12:00:00.123Z')
    const longAgo = new Date('0099-01-01T00:00:00Z')
    const job = await store({ availableAt, expiresAt: longAgo })
    expect(new Date(job.available_at)).toEqual(availableAt)
    // In zones of today's names an hour of that time had seconds, which no Date can read.
    const inUtc = `select (expires_at at time zone 'UTC')::text || 'Z' from rowlock.waiting where id = $1`
    const expiresAt = await db.value<string>(inUtc, [job.id])
    expect(new Date(expiresAt.replace(' ', 'T'))).toEqual(longAgo)
    expect(job).toMatchObject({ queue: 'default', priority: 0, timeout: '00:01:00', max_attempts: null })
  })

  it('may have the longest and the shortest spans there are', async () => {
    const job = await store({ delay: '3650d', timeout: '7d', expiresIn: '3650d' })
    expect(Date.parse(job.available_at) - Date.parse(job.enqueued_at)).toBe(3650 * 86_400_000)
    await store({ delay: 0, timeout: 10, expiresIn: 0 })
  })
})

describe('a backoff', () => {
  // As random() draws: PostgreSQL refuses to multiply what is so small that the product is no normal number.
  const dice = fc.double({ min: 0, max: 1, noNaN: true }).map((r) => (r < 1e-15 ? 0 : r))
  const ms = fc.integer({ min: 0, max: 2_592_000_000 })
  const policies: fc.Arbitrary<Backoff | undefined> = fc.oneof(
    fc.constant(undefined),
    fc
      .tuple(ms, ms, fc.option(fc.double({ min: 1, max: 10, noNaN: true }), { nil: undefined }))
      .map(([a, b, factor]) =>
        exponential({ min: Math.min(a, b), max: Math.max(a, b), ...(factor !== undefined && { factor }) }),
      ),
    ms.map(fixed),
    fc.array(ms, { minLength: 1, maxLength: 100 }).map(list),
  )
  const failures = fc.oneof(
    fc.constantFrom(0, 1, 2, 31, 62, 63, 100, 128, 1000, 32_767, 2 ** 31 - 1),
    fc.integer({ min: 1, max: 150 }),
  )

  it('is accepted by SQL, and gives the same wait there', async () => {
    const cases = sample(fc.tuple(policies, failures, dice), 1000)
    const rows = await db.sql<{ fault: string | null; ms: string }>(
      `select rowlock.backoff_fault(c.policy) as fault, rowlock.backoff_ms(c.policy, c.failures, c.random) as ms
         from unnest($1::jsonb[], $2::integer[], $3::double precision[]) with ordinality
                as c (policy, failures, random, n)
        order by c.n`,
      [
        cases.map(([policy]) => policy && JSON.stringify(policy)),
        cases.map(([, n]) => n),
        cases.map(([, , r]) => r),
      ],
    )
    cases.forEach(([policy, count, random], i) => {
      const here = backoffMs(policy, count, () => random)
      const there = Number(rows[i]!.ms)
      expect(rows[i]!.fault).toBeNull()
      // power() may differ in the last bit, and floor() then by one.
      expect(
        Math.abs(there - here),
        JSON.stringify({ policy, count, random, here, there }),
      ).toBeLessThanOrEqual(1)
    })
  })
})
