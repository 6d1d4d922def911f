// One job in a worker: what its handler is given, and what becomes of what it answers.

import { createRowlock, defineJob, handle, isRowlockError, type RunningJob, snooze } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fixed } from '../../src/ground/backoff.ts'
import { rowlockDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('run')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const plain = defineJob<unknown>('plain')
const again = { retry: { backoff: fixed(0) } }

describe('what a handler is given', () => {
  test('the input comes as the output of its schema: a date is a date', async () => {
    const job = defineJob('dated', { input: z.object({ at: z.coerce.date(), n: z.number().default(7) }) })
    const seen: { at: Date; n: number }[] = []
    await rig.start({ handlers: [handle(job, ({ input }) => void seen.push(input))] })
    const { id } = await rig.rowlock.enqueue(job, { at: new Date('2026-01-02T03:04:05.678Z') })
    await rig.becomes(id, 'done')
    expect(seen).toEqual([{ at: new Date('2026-01-02T03:04:05.678Z'), n: 7 }])
    expect(seen[0]!.at).toBeInstanceOf(Date)
  })

  test('a large input comes whole, from its own row', async () => {
    const input = { text: 'ä'.repeat(300_000), deep: [[[{ a: null }]]] }
    let seen: unknown
    await rig.start({
      handlers: [
        handle(plain, (context) => {
          seen = context.input
        }),
      ],
    })
    const { id } = await rig.rowlock.enqueue(plain, input)
    await rig.becomes(id, 'done')
    expect(seen).toEqual(input)
  })

  test('inputs of every JSON type come as they were given', async () => {
    const inputs = ['text', [1], 5, null, true, {}, 'null', '', [[]]]
    const seen = new Map<string, unknown>()
    await rig.start({ handlers: [handle(plain, ({ input, job }) => void seen.set(job.id, input))] })
    const ids = (await rig.rowlock.enqueueMany(inputs.map((input) => plain.with(input)))).map(({ id }) => id)
    await rig.idle()
    expect(ids.map((id) => seen.get(id))).toEqual(inputs)
  })

  test('the job shows its attempt, failures, maxAttempts and everything it was enqueued with', async () => {
    const seen: RunningJob[] = []
    const handler = handle(plain, ({ job }) => {
      seen.push(job)
      if (seen.length === 2) return snooze(0)
      if (seen.length < 4) throw new Error('not yet')
    })
    await rig.start({ handlers: [handler] })
    const { id } = await rig.rowlock.enqueue(plain, 1, {
      ...again,
      priority: 3,
      tenantId: 'acme',
      dedupeKey: 'one',
      metadata: { trace: 'abc' },
    })
    const row = await rig.becomes(id, 'done')
    expect(seen.map(({ attempt, failures }) => [attempt, failures])).toEqual([
      [1, 0],
      [2, 1],
      [3, 1],
      [4, 2],
    ])
    expect(seen[0]).toMatchObject({
      id,
      kind: 'plain',
      queue: 'default',
      priority: 3,
      maxAttempts: 10,
      tenantId: 'acme',
      dedupeKey: 'one',
      metadata: { trace: 'abc' },
      retriedFrom: null,
    })
    expect(seen[0]!.enqueuedAt).toEqual(new Date(Math.trunc(row.enqueuedAt.getTime())))
    expect(row).toMatchObject({ attempt: 4, failures: 2 })
    expect(row.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'snoozed', 'failed'])
  })

  test('the idempotency key is the same for every attempt and differs between installations', async () => {
    const other = await rowlockDatabase('other_installation')
    const elsewhere = createRowlock({ connectionString: other.url })
    try {
      const keys: string[] = []
      const handler = handle(plain, ({ idempotencyKey, job }) => {
        keys.push(idempotencyKey)
        if (job.failures === 0) throw new Error('once more')
      })
      await rig.start({ handlers: [handler] })
      await rig.db.sql(`select setval('rowlock.job_id', 1000000)`)
      await other.sql(`select setval('rowlock.job_id', 1000000)`)
      await other.sql('update rowlock.installation set id = gen_random_uuid()')
      const { id } = await rig.rowlock.enqueue(plain, 1, again)
      await rig.becomes(id, 'done')
      const worker = elsewhere.worker({ handlers: [handler], poll: 50, listen: false, logger: rig.logger })
      await worker.start()
      const twin = await elsewhere.enqueue(plain, 1, again)
      await until('the twin is done', async () => (await elsewhere.job(twin.id))?.state === 'done')
      await worker.stop()
      expect(twin.id).toBe(id)
      expect(keys).toHaveLength(4)
      expect(keys[0]).toBe(keys[1])
      expect(keys[2]).toBe(keys[3])
      expect(keys[0]).not.toBe(keys[2])
    } finally {
      await elsewhere.close()
      await other.drop()
    }
  })

  test('an idempotency key that was given is the one that the handler gets', async () => {
    const keys: string[] = []
    await rig.start({ handlers: [handle(plain, ({ idempotencyKey }) => void keys.push(idempotencyKey))] })
    const { id } = await rig.rowlock.enqueue(plain, 1, { idempotencyKey: 'order-7' })
    await rig.becomes(id, 'done')
    expect(keys).toEqual(['order-7'])
  })

  test('what a handler logs names its job', async () => {
    await rig.start({ handlers: [handle(plain, ({ log }) => log.warn({ more: 1 }, 'said by the handler'))] })
    const { id } = await rig.rowlock.enqueue(plain, 1)
    await rig.becomes(id, 'done')
    const line = rig.lines.find(({ message }) => message === 'said by the handler')
    expect(line?.fields).toEqual({ jobId: id, kind: 'plain', queue: 'default', attempt: 1, more: 1 })
  })

  test('a logger that throws stops nothing', async () => {
    const fail = () => {
      throw new Error('the disk is full')
    }
    const logger = { debug: fail, info: fail, warn: fail, error: fail }
    await rig.start({ handlers: [handle(plain, ({ log }) => log.warn({}, 'lost'))], logger })
    const { id } = await rig.rowlock.enqueue(plain, 1)
    await rig.becomes(id, 'done')
  })
})

describe('what a handler answers', () => {
  test('a result is stored; without one there is none', async () => {
    await rig.start({ handlers: [handle(plain, ({ input }) => input as any)] })
    const [one, two, three] = await rig.rowlock.enqueueMany([
      plain.with({ at: new Date(0), list: [1, null] }),
      plain.with(null),
      plain.with(0),
    ])
    expect((await rig.becomes(one!.id, 'done')).result).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      list: [1, null],
    })
    expect((await rig.becomes(two!.id, 'done')).result).toBeNull()
    expect((await rig.becomes(three!.id, 'done')).result).toBe(0)
    const undefinedOne = defineJob<unknown>('nothing')
    await rig.start({ handlers: [handle(undefinedOne, () => undefined)] })
    const { id } = await rig.rowlock.enqueue(undefinedOne, 1)
    expect((await rig.becomes(id, 'done')).result).toBeNull()
  })

  test('a result that cannot be stored leaves the job done, and says so in its place', async () => {
    const results: Record<string, () => unknown> = {
      nul: () => 'a\0b',
      key: () => ({ 'a\0': 1 }),
      emoji: () => '😀'.slice(0, 1),
      big: () => 'x'.repeat(64_001),
      bigint: () => 1n,
      cycle: () => {
        const a: any = {}
        a.a = a
        return a
      },
      deep: () => JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)),
      fn: () => () => {},
    }
    await rig.start({ handlers: [handle(plain, ({ input }) => results[input as string]!() as any)] })
    for (const name of Object.keys(results)) {
      const { id } = await rig.rowlock.enqueue(plain, name)
      const row = await rig.becomes(id, 'done')
      expect(row.result, name).toMatchObject({
        unstorable: expect.any(String),
      })
    }
  })

  test('a result that its schema refuses makes the job fail for good', async () => {
    const job = defineJob('strict', { input: z.string(), result: z.object({ n: z.number() }) })
    let runs = 0
    const handler = handle(job, ({ input }) => {
      runs++
      return (input === 'good' ? { n: 1 } : { n: 'one' }) as { n: number }
    })
    await rig.start({ handlers: [handler] })
    const bad = await rig.rowlock.enqueue(job, 'bad')
    const good = await rig.rowlock.enqueue(job, 'good')
    const row = await rig.becomes(bad.id, 'failed')
    expect(row.cause).toBe('validation')
    expect(row.attempts[0]!.error).toMatchObject({
      name: 'ResultInvalid',
      message: expect.stringContaining('n'),
    })
    expect((await rig.becomes(good.id, 'done')).result).toEqual({ n: 1 })
    expect(runs).toBe(2)
  })

  test('a schema that breaks later, in a promise, has refused the result', async () => {
    const validate = async () => {
      await Promise.resolve()
      throw new Error('the schema broke')
    }
    const result = { '~standard': { version: 1, vendor: 'ours', validate } } as never
    const job = defineJob('breaking', { result })
    await rig.start({ handlers: [handle(job, () => 'x' as never)] })
    const { id } = await rig.rowlock.enqueue(job, null)
    const row = await rig.becomes(id, 'failed')
    expect(row.attempts[0]!.error).toMatchObject({ message: expect.stringContaining('the schema broke') })
  })

  test('an input that its schema refuses by now fails the job at once, without the handler', async () => {
    const job = defineJob('checked', { input: z.object({ n: z.number() }), ...again })
    let runs = 0
    const { id } = await rig.rowlock.enqueue(job, { n: 1 })
    await rig.db.sql(`update rowlock.waiting set input = '{"n": "one"}'`)
    await rig.start({ handlers: [handle(job, () => void runs++)] })
    const row = await rig.becomes(id, 'failed')
    expect(row).toMatchObject({ cause: 'validation', attempt: 1, failures: 0 + 1 })
    expect(row.attempts).toHaveLength(1)
    expect(runs).toBe(0)
  })
})

test('a schema that breaks on an input has not refused it: the job is tried again', async () => {
  let asked = 0
  const validate = async (value: unknown) => {
    await Promise.resolve()
    if (asked++ === 1) throw new Error('the schema broke')
    return { value }
  }
  const input = { '~standard': { version: 1, vendor: 'ours', validate } } as never
  const job = defineJob('fragile', { input, ...again })
  const { id } = await rig.rowlock.enqueue(job, 1 as never)
  await rig.start({ handlers: [handle(job, () => {})] })
  const row = await rig.becomes(id, 'done')
  expect(row).toMatchObject({ attempt: 2, failures: 1 })
  expect(row.attempts[0]!.error).toMatchObject({ message: 'the schema broke' })
})

describe('middleware', () => {
  test('the first one added is the outermost, and sees results and errors', async () => {
    const order: string[] = []
    const worker = rig.worker({
      handlers: [
        handle(plain, ({ input }) => {
          order.push('handler')
          if (input === 'bad') throw new Error('bad')
          return 'result'
        }),
      ],
    })
    for (const name of ['outer', 'inner']) {
      worker.use(async ({ job }, next) => {
        order.push(`${name} ${job.kind}`)
        try {
          return `${name}(${await next()})`
        } catch (error) {
          order.push(`${name} saw ${(error as Error).message}`)
          throw new Error(`${name}: ${(error as Error).message}`)
        }
      })
    }
    await worker.start()
    const good = await rig.rowlock.enqueue(plain, 'good')
    expect((await rig.becomes(good.id, 'done')).result).toBe('outer(inner(result))')
    expect(order).toEqual(['outer plain', 'inner plain', 'handler'])
    order.length = 0
    const bad = await rig.rowlock.enqueue(plain, 'bad')
    const row = await rig.becomes(bad.id, 'retryable')
    expect(row.attempts[0]!.error).toMatchObject({ message: 'outer: inner: bad' })
    expect(order.slice(-2)).toEqual(['inner saw bad', 'outer saw inner: bad'])
  })

  test('one around an enqueue sees and changes the requests, and its refusal stores nothing', async () => {
    const client = createRowlock({ connectionString: rig.db.url })
    const order: string[] = []
    client.use(async (context, next) => {
      order.push(`outer ${context.requests.length}`)
      const answer = await next()
      order.push(`stored ${answer.length}`)
      return answer
    })
    client.use(async (context, next) => {
      order.push('inner')
      context.requests = context.requests.map((request) => ({
        ...request,
        options: { ...request.options, tenantId: 'acme' },
      }))
      if (context.requests.some(({ input }) => input === 'no')) throw new Error('not this one')
      return next()
    })
    const [first] = await client.enqueueMany([plain.with(1), plain.with(2)])
    expect(order).toEqual(['outer 2', 'inner', 'stored 2'])
    expect((await client.job(first!.id))?.tenantId).toBe('acme')
    await expect(client.enqueue(plain, 'no')).rejects.toThrow('not this one')
    expect(await rig.db.value('select count(*)::integer from rowlock.waiting')).toBe(2)
    await client.close()
  })
})

test('two handlers for one kind, and no handler at all, are refused early', () => {
  const refusal = (body: () => unknown) => {
    try {
      body()
      return 'none'
    } catch (error) {
      return isRowlockError(error) ? error.code : error
    }
  }
  const handler = handle(plain, () => {})
  expect(refusal(() => rig.rowlock.worker({ handlers: [handler, handler] }))).toBe('HANDLER_CONFLICT')
  expect(refusal(() => rig.rowlock.worker({ handlers: [] }))).toBe('INVALID_OPTION')
  expect(refusal(() => rig.rowlock.worker({ handlers: [handler], lease: '1s', heartbeat: '600ms' }))).toBe(
    'INVALID_OPTION',
  )
})
