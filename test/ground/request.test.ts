import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { exponential, fixed, list } from '../../src/ground/backoff.ts'
import { isRowlockError } from '../../src/ground/errors.ts'
import { defineJob, type EnqueueOptions } from '../../src/ground/job.ts'
import { toWire, type Wire } from '../../src/ground/request.ts'
import { refusal } from './refusal.ts'

const plain = defineJob('plain')

/** The job object that SQL gets. Fails when it would come later. */
function wire(...[input, options]: Parameters<typeof plain.with>): Record<string, unknown> {
  const made = toWire(plain.with(input, options)) as Wire
  expect(made.bytes).toBe(Buffer.byteLength(made.job))
  return JSON.parse(made.job)
}

const schema = <Out>(validate: (value: unknown) => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate } }) as StandardSchemaV1<unknown, Out>

describe('a request', () => {
  it('says no more than what was set', () => {
    expect((toWire(plain.with({ a: 1 })) as Wire).job).toBe(
      '{"kind":"plain","queue":"default","input":{"a":1}}',
    )
    expect(wire(null, {})).toEqual({ kind: 'plain', queue: 'default', input: null })
    const unset = { queue: undefined, delay: undefined, retry: undefined, metadata: undefined }
    expect(wire(null, unset)).toEqual({ kind: 'plain', queue: 'default', input: null })
  })

  it('says all that was set, in the words of SQL', () => {
    const options: EnqueueOptions = {
      queue: 'email',
      priority: -3,
      delay: '10m',
      expiresIn: '1h',
      tenantId: 'acme "1"',
      dedupeKey: 'invoice:42',
      idempotencyKey: 'once\\',
      retry: { maxAttempts: 3, backoff: list(['1s', '5s']) },
      timeout: '30s',
      metadata: { trace: 'é', at: new Date(0) },
    }
    expect(wire(['😀'], options)).toEqual({
      kind: 'plain',
      queue: 'email',
      input: ['😀'],
      priority: -3,
      delay: '600s',
      expires_in: '3600s',
      tenant_id: 'acme "1"',
      dedupe_key: 'invoice:42',
      idempotency_key: 'once\\',
      max_attempts: 3,
      backoff: { type: 'list', delays_ms: [1000, 5000] },
      timeout: '30s',
      metadata: { trace: 'é', at: '1970-01-01T00:00:00.000Z' },
    })
    const instants = wire(0, { availableAt: new Date(0), expiresAt: new Date(1) })
    expect(instants).toMatchObject({
      available_at: '1970-01-01T00:00:00.000Z',
      expires_at: '1970-01-01T00:00:00.001Z',
    })
  })

  it('tells its size, that of its input, and whether it has a dedupe key', () => {
    const made = toWire(plain.with('é', { dedupeKey: 'k' })) as Wire
    expect(made).toMatchObject({ inputBytes: 4, keyed: true, bytes: Buffer.byteLength(made.job) })
    expect(toWire(plain.with(1))).toMatchObject({ inputBytes: 1, keyed: false })
  })

  it('reads a definition of another copy of the package anew each time', () => {
    let queue = 'a'
    const foreign = Object.freeze(
      Object.defineProperties(Object.create(null), {
        ...Object.getOwnPropertyDescriptors(plain),
        queue: { get: () => queue, enumerable: true },
      }),
    )
    const queueOf = () => JSON.parse((toWire({ definition: foreign, input: 1 }) as Wire).job).queue
    expect(queueOf()).toBe('a')
    queue = 'b'
    expect(queueOf()).toBe('b')
  })

  it('overrides its definition field by field', () => {
    const job = defineJob('job', {
      queue: 'a',
      priority: 1,
      timeout: '1m',
      retry: { maxAttempts: 5, backoff: exponential() },
    })
    const read = (options?: EnqueueOptions) => JSON.parse((toWire(job.with(null, options)) as Wire).job)
    expect(read()).toMatchObject({ queue: 'a', priority: 1, timeout: '60s', max_attempts: 5 })
    const other = read({ priority: 0, retry: { backoff: fixed(5) }, timeout: 20, queue: 'b' })
    expect(other).toMatchObject({
      queue: 'b',
      priority: 0,
      timeout: '0.02s',
      max_attempts: 5,
      backoff: { type: 'fixed', delay_ms: 5 },
    })
  })

  it.each(['text', [1], 5, null, true, {}, '"quoted"', [[]], 0, ''])(
    'carries %j once encoded, as it is',
    (input) => {
      expect(wire(input).input).toEqual(input)
    },
  )

  it('may be due in the past, and is then due at once: SQL decides by its own clock', () => {
    const longAgo = new Date(0)
    longAgo.setUTCFullYear(99)
    expect(wire(0, { availableAt: longAgo }).available_at).toBe('0099-01-01T00:00:00.000Z')
  })

  it.each([
    ['prority', { prority: 1 }],
    ['queue', { queue: ' ' }],
    ['priority', { priority: 32_768 }],
    ['priority', { priority: 1.5 }],
    ['delay', { delay: -1 }],
    ['delay', { delay: -1e15 }],
    ['delay', { delay: Number.NaN }],
    ['delay', { delay: Number.POSITIVE_INFINITY }],
    ['delay', { delay: '5' }],
    ['delay', { delay: '3651d' }],
    ['delay', { delay: null }],
    ['availableAt', { availableAt: new Date(Number.NaN) }],
    ['availableAt', { availableAt: new Date(8.64e15) }],
    ['availableAt', { availableAt: new Date(Date.now() + 3651 * 86_400_000) }],
    ['availableAt', { availableAt: new Date('-000001-01-01T00:00:00Z') }],
    ['availableAt', { availableAt: '2026-01-01' }],
    ['availableAt', { availableAt: 5 }],
    ['availableAt', { availableAt: 'infinity' }],
    ['availableAt', { delay: 5, availableAt: new Date() }],
    ['expiresAt', { expiresAt: new Date(Number.NaN) }],
    ['expiresIn', { expiresIn: -5 }],
    ['expiresIn', { expiresIn: 5, expiresAt: new Date() }],
    ['tenantId', { tenantId: '' }],
    ['tenantId', { tenantId: 42 }],
    ['dedupeKey', { dedupeKey: 'x'.repeat(513) }],
    ['idempotencyKey', { idempotencyKey: 'a\0' }],
    ['retry.maxAttempts', { retry: { maxAttempts: 32_768 } }],
    ['retry.backof', { retry: { backof: fixed(5) } }],
    ['timeout', { timeout: '8d' }],
    ['metadata', { metadata: [] }],
    ['metadata', { metadata: 'text' }],
    ['metadata', { metadata: new Map() }],
  ])('with a wrong %s is refused before SQL sees it (%#)', (path, options) => {
    expect(refusal(() => wire(null, options as never))).toMatchObject({ code: 'INVALID_OPTION', path })
  })

  it('whose input or metadata cannot be stored is refused with the path of the fault', () => {
    expect(refusal(() => wire({ a: [5n] }))).toMatchObject({ code: 'INPUT_NOT_STORABLE', path: 'a[0]' })
    expect(refusal(() => wire(undefined)).code).toBe('INPUT_NOT_STORABLE')
    expect(refusal(() => wire('x'.repeat(1_000_000))).code).toBe('INPUT_TOO_LARGE')
    expect(refusal(() => wire(1, { metadata: { a: 'b\0' } }))).toMatchObject({
      code: 'INPUT_NOT_STORABLE',
      path: 'metadata.a',
    })
    expect(refusal(() => wire(1, { metadata: { a: 'x'.repeat(4096) } }))).toMatchObject({
      code: 'INPUT_TOO_LARGE',
      path: 'metadata',
    })
  })

  it.each([null, undefined, {}, { definition: { kind: 'x', queue: 'y' } }, plain])(
    'that no definition made is refused (%#)',
    (request) => {
      expect(refusal(() => toWire(request as never))).toMatchObject({ code: 'INVALID_OPTION', path: 'job' })
    },
  )
})

describe('the schema of a job', () => {
  const email = defineJob('send-email', {
    input: z.object({ to: z.email(), at: z.coerce.date(), template: z.string().default('welcome') }),
  })

  it('judges the JSON that will be stored, and what it makes of it is not stored', () => {
    const { job } = toWire(email.with({ to: 'a@b.example', at: new Date(0) })) as Wire
    expect(JSON.parse(job).input).toEqual({ to: 'a@b.example', at: '1970-01-01T00:00:00.000Z' })
    const seen: unknown[] = []
    const job2 = defineJob('x', { input: schema((value) => ({ value: seen.push(value) })) })
    toWire(job2.with({ at: new Date(0), gone: undefined, zero: -0 }))
    expect(seen).toEqual([{ at: '1970-01-01T00:00:00.000Z', zero: 0 }])
  })

  it('answers at once when it can, and by a promise when it must', async () => {
    expect(toWire(email.with({ to: 'a@b.example', at: 0 }))).not.toBeInstanceOf(Promise)
    const checked = defineJob('checked', { input: z.string().refine(async (text) => text === 'good') })
    const later = toWire(checked.with('good'))
    expect(later).toBeInstanceOf(Promise)
    expect((await later).job).toContain('"good"')
    const error = await Promise.resolve(toWire(checked.with('bad'))).catch((e: unknown) => e)
    expect(isRowlockError(error, 'INPUT_REFUSED')).toBe(true)
    // biome-ignore lint/suspicious/noThenProperty: a promise of another make
    const thenable = schema(() => ({ then: (ok: (r: unknown) => void) => ok({ value: 1 }) }))
    expect((await toWire(defineJob('x', { input: thenable }).with(1))).job).toContain('"input":1')
  })

  it('that refuses is quoted, with its issues as data', () => {
    const error = refusal(() => toWire(email.with({ to: 'nobody', at: 'never' })))
    expect(error.code).toBe('INPUT_REFUSED')
    expect(error.message).toMatch(/^The input of "send-email" was refused by its schema: to: .*; at: /)
    expect(error.issues?.map(({ path }) => path)).toEqual([['to'], ['at']])
  })

  it('may say its paths in segments, as many issues as it likes, and none at all', () => {
    const issue = { message: 'wrong', path: [{ key: 'a' }, 0, 'odd key'] }
    const many = defineJob('x', { input: schema(() => ({ issues: Array(9).fill(issue) })) })
    const error = refusal(() => toWire(many.with(1)))
    expect(error.message).toContain('a[0]["odd key"]: wrong; a[0]["odd key"]: wrong')
    expect(error.message).toContain('; and 6 more.')
    expect(error.issues?.[8]).toEqual({ message: 'wrong', path: ['a', 0, 'odd key'] })
    const silent = defineJob('x', { input: schema(() => ({ issues: [] })) })
    expect(refusal(() => toWire(silent.with(1))).message).toContain('no reason was given')
  })

  it('that breaks is taken as refusing, with what it threw as the cause', async () => {
    const thrown = new Error('broken')
    const breaks = (validate: () => unknown) => toWire(defineJob('x', { input: schema(validate) }).with(1))
    const error = refusal(() =>
      breaks(() => {
        throw thrown
      }),
    )
    expect(error).toMatchObject({ code: 'INPUT_REFUSED', cause: thrown })
    expect(error.message).toContain('the schema threw "broken"')
    const late = await Promise.resolve(breaks(() => Promise.reject(thrown))).catch((e: unknown) => e)
    expect(late).toMatchObject({ code: 'INPUT_REFUSED', cause: thrown })
    for (const answer of [undefined, null, 5]) {
      expect(refusal(() => breaks(() => answer)).code).toBe('INPUT_REFUSED')
    }
  })
})
