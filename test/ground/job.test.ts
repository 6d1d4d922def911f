import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { exponential, fixed } from '../../src/ground/backoff.ts'
import {
  type AnyJob,
  defineJob,
  type InputOf,
  isJobDefinition,
  type JobDefinition,
  type OutputOf,
  type ResultOf,
} from '../../src/ground/job.ts'
import { refusal } from './refusal.ts'

const sendEmail = defineJob('send-email', {
  queue: 'email',
  input: z.object({ to: z.email(), at: z.coerce.date(), template: z.string().default('welcome') }),
  result: z.object({ messageId: z.string() }),
  retry: { maxAttempts: 8, backoff: exponential({ min: '1s', max: '1h' }) },
  timeout: '30s',
  priority: 5,
})

describe('a job definition', () => {
  it('holds what it was defined with, in the units inside', () => {
    expect(sendEmail).toMatchObject({
      kind: 'send-email',
      queue: 'email',
      priority: 5,
      maxAttempts: 8,
      backoff: { type: 'exponential', min_ms: 1000, max_ms: 3_600_000 },
      timeoutMs: 30_000,
    })
    expect(isJobDefinition(sendEmail)).toBe(true)
  })

  it('that names no queue is of the default one, and holds nothing else that nobody set', () => {
    const plain = defineJob('plain', { queue: undefined, input: undefined, retry: {}, timeout: undefined })
    expect(Object.keys(plain).sort()).toEqual(['kind', 'queue', 'with'])
    expect(plain.queue).toBe('default')
  })

  it('cannot be changed', () => {
    expect(Object.isFrozen(sendEmail)).toBe(true)
    expect(Object.isFrozen(sendEmail.backoff)).toBe(true)
    expect(Object.isFrozen(sendEmail.with({ to: 'a@b.c', at: 5 }))).toBe(true)
    const written = { type: 'fixed' as const, delay_ms: 5 }
    const job = defineJob('x', { retry: { backoff: written } })
    written.delay_ms = 6
    expect(job.backoff).toEqual({ type: 'fixed', delay_ms: 5 })
  })

  it('makes requests as plain values', () => {
    const input = { to: 'a@b.c', at: new Date(5) }
    expect(sendEmail.with(input, { priority: 1 })).toEqual({
      definition: sendEmail,
      input,
      options: { priority: 1 },
    })
    expect(sendEmail.with(input)).not.toHaveProperty('options')
    const { with: request } = sendEmail
    expect(request(input).definition).toBe(sendEmail)
  })

  it('is known as one in another copy of the package, and nothing else is', async () => {
    vi.resetModules()
    const copy = await import('../../src/ground/job.ts')
    expect(copy.defineJob).not.toBe(defineJob)
    expect(copy.isJobDefinition(sendEmail)).toBe(true)
    for (const value of [null, undefined, 'send-email', { kind: 'send-email', queue: 'email' }]) {
      expect(isJobDefinition(value)).toBe(false)
    }
  })

  it.each([
    ['kind', () => defineJob('')],
    ['kind', () => defineJob(' x')],
    ['kind', () => defineJob(undefined as never)],
    ['queue', () => defineJob('x', { queue: 'a\0' })],
    ['queue', () => defineJob('x', { queue: null as never })],
    ['timeout', () => defineJob('x', { timeout: '9ms' })],
    ['timeout', () => defineJob('x', { timeout: '30x' as never })],
    ['priority', () => defineJob('x', { priority: 11 })],
    ['priority', () => defineJob('x', { priority: 0.5 })],
    ['priority', () => defineJob('x', { priority: '5' as never })],
    ['priority', () => defineJob('x', { priority: Number.NaN })],
    ['retry', () => defineJob('x', { retry: 5 as never })],
    ['retry.maxAttempts', () => defineJob('x', { retry: { maxAttempts: 0 } })],
    ['retry.maxAttempts', () => defineJob('x', { retry: { maxAttempts: 101 } })],
    ['retry.maxAttempts', () => defineJob('x', { retry: { maxAttempts: 2 ** 31 } })],
    ['retry.backoff', () => defineJob('x', { retry: { backoff: '5s' as never } })],
    [
      'retry.backoff.max_ms',
      () => defineJob('x', { retry: { backoff: { type: 'exponential', min_ms: 1, max_ms: -1 } } }),
    ],
    ['retry.attempts', () => defineJob('x', { retry: { attempts: 5 } as never })],
    ['input', () => defineJob('x', { input: { parse: () => 1 } as never })],
    ['result', () => defineJob('x', { result: 'string' as never })],
    ['timout', () => defineJob('x', { timout: '5s' } as never)],
  ])('with a wrong %s is refused at once', (path, define) => {
    expect(refusal(define)).toMatchObject({ code: 'INVALID_OPTION', path })
  })

  it('with a misspelt option is answered with the nearest one', () => {
    expect(refusal(() => defineJob('x', { timout: '5s' } as never)).message).toBe(
      `defineJob("x") has no option "timout"; did you mean 'timeout'?`,
    )
  })

  it('with options that are no object is refused', () => {
    expect(refusal(() => defineJob('x', null as never)).code).toBe('INVALID_OPTION')
    expect(refusal(() => defineJob('x', (() => {}) as never)).code).toBe('INVALID_OPTION')
  })
})

describe('the types of a job', () => {
  it('are the input of its schema for producers and the output for handlers', () => {
    expectTypeOf(sendEmail.kind).toEqualTypeOf<'send-email'>()
    expectTypeOf<InputOf<typeof sendEmail>>().toEqualTypeOf<{
      to: string
      at: unknown
      template?: string | undefined
    }>()
    expectTypeOf<OutputOf<typeof sendEmail>>().toEqualTypeOf<{ to: string; at: Date; template: string }>()
    expectTypeOf<ResultOf<typeof sendEmail>>().toEqualTypeOf<{ messageId: string }>()
    // @ts-expect-error the input has a to
    sendEmail.with({ at: new Date() })
    // @ts-expect-error there is no such option
    sendEmail.with({ to: 'a@b.c', at: 5 }, { prority: 5 })
  })

  it('are unknown without a schema', () => {
    const plain = defineJob('plain', { timeout: '5s' })
    expectTypeOf(plain).toEqualTypeOf<JobDefinition<'plain', unknown, unknown, unknown>>()
    expectTypeOf(defineJob('bare')).toEqualTypeOf<JobDefinition<'bare', unknown, unknown, unknown>>()
  })

  it('are what was said, when types were given and no schema', () => {
    const typed = defineJob<{ invoiceId: string }, { ok: boolean }>('sync', { queue: 'erp' })
    expectTypeOf<InputOf<typeof typed>>().toEqualTypeOf<{ invoiceId: string }>()
    expectTypeOf<OutputOf<typeof typed>>().toEqualTypeOf<{ invoiceId: string }>()
    expectTypeOf<ResultOf<typeof typed>>().toEqualTypeOf<{ ok: boolean }>()
    const half = defineJob<{ invoiceId: string }>('sync')
    expectTypeOf<ResultOf<typeof half>>().toEqualTypeOf<unknown>()
    // @ts-expect-error the invoice has an id
    typed.with({})
  })

  it('let any definition stand where any job is wanted, and no other value', () => {
    const jobs: AnyJob[] = [sendEmail, defineJob('plain'), defineJob<{ a: 1 }>('typed')]
    expectTypeOf(sendEmail).toExtend<AnyJob>()
    expectTypeOf<{ kind: string; queue: string }>().not.toExtend<AnyJob>()
    expect(jobs).toHaveLength(3)
  })

  it('refuse a duration without a unit that exists', () => {
    // @ts-expect-error no such unit
    expect(() => defineJob('x', { timeout: '30x' })).toThrow()
    // @ts-expect-error made by fixed()
    expect(() => defineJob('x', { retry: { backoff: '5s' } })).toThrow()
    // @ts-expect-error no such option
    expect(() => defineJob('x', { timout: '5s' })).toThrow()
    expectTypeOf(fixed).parameter(0).not.toEqualTypeOf<string>()
  })
})
