// What is thrown, and where the job goes: back with its backoff, to the dead letters, or to history.

import { cancel, defineJob, exponential, fixed, handle, list, permanent, snooze } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { reap } from '../../src/engine/maintain.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('failing')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<string>('thrower')
const never = () => {
  throw new Error('no question is answered')
}
const cycle: { cause?: unknown; self?: unknown } & Error = new Error('a cycle')
cycle.cause = cycle
cycle.self = cycle
const revoked = Proxy.revocable(new Error('gone'), {})
revoked.revoke()
const traps = ['get', 'has', 'getPrototypeOf', 'ownKeys', 'getOwnPropertyDescriptor'] as const
const hostile = new Proxy({}, Object.fromEntries(traps.map((trap) => [trap, never])))

const thrown: Record<string, unknown> = {
  undefined: undefined,
  null: null,
  string: 'just a string',
  'empty string': '',
  zero: 0,
  symbol: Symbol('s'),
  bigint: 10n,
  function: () => {},
  frozen: Object.freeze({ a: 1 }),
  'no prototype': Object.create(null),
  'toString throws': { toString: never },
  'message throws': Object.defineProperty(new Error('x'), 'message', { get: never }),
  'hostile proxy': hostile,
  'revoked proxy': revoked.proxy,
  'proxy of an error': new Proxy(new Error('x'), Object.fromEntries(traps.map((trap) => [trap, never]))),
  NUL: new Error('a\0b'),
  'half an emoji': new Error('😀'.slice(0, 1)),
  'NUL in its name and code': Object.assign(new Error('x'), { name: 'a\0', code: '\0' }),
  '50 MB': new Error('x'.repeat(50_000_000)),
  cycle,
  aggregate: new AggregateError([new Error('one'), null, cycle], 'many'),
  'deep causes': Array.from({ length: 1_000 }).reduce<Error>(
    (cause) => new Error('c', { cause }),
    new Error('c'),
  ),
}

test('whatever is thrown, the job ends retryable with a row that can be read, and others go on', async () => {
  const names = Object.keys(thrown)
  await rig.start({
    handlers: [
      handle(job, ({ input }) => {
        if (input === 'well') return
        throw thrown[input]
      }),
    ],
  })
  const jobs = await rig.rowlock.enqueueMany([...names, 'well'].map((name) => job.with(name)))
  for (const [n, name] of names.entries()) {
    const row = await rig.becomes(jobs[n]!.id, 'retryable')
    expect(row.failures, name).toBe(1)
    expect(row.cause, name).toMatch(/^[\w ]+$/)
    const [attempt] = row.attempts
    expect(attempt, name).toMatchObject({ outcome: 'failed', error: { message: expect.any(String) } })
    expect((attempt!.error as { message: string }).message, name).not.toBe('')
  }
  await rig.becomes(jobs.at(-1)!.id, 'done')
})

test('a promise that is rejected with nothing is a failure too', async () => {
  await rig.start({ handlers: [handle(job, () => Promise.reject())] })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect((await rig.becomes(id, 'retryable')).cause).toBe('non_error')
})

test('a permanent error is not retried', async () => {
  let runs = 0
  await rig.start({
    handlers: [
      handle(job, () => {
        runs++
        throw permanent(Object.assign(new Error('no such mailbox'), { code: 'ENOMAILBOX' }))
      }),
    ],
  })
  const { id } = await rig.rowlock.enqueue(job, '', { retry: { backoff: fixed(0) } })
  const row = await rig.becomes(id, 'failed')
  expect(row).toMatchObject({ cause: 'ENOMAILBOX', attempt: 1 })
  expect(runs).toBe(1)
})

test('a job whose failures are used up becomes a dead letter, with the last error', async () => {
  let runs = 0
  await rig.start({
    handlers: [
      handle(job, () => {
        throw new Error(`try ${++runs}`)
      }),
    ],
  })
  const { id } = await rig.rowlock.enqueue(job, '', { retry: { maxAttempts: 3, backoff: fixed(0) } })
  const row = await rig.becomes(id, 'dead_letter')
  expect(row).toMatchObject({ attempt: 3, failures: 3, cause: 'Error' })
  expect(row.attempts.map(({ error }) => (error as Error).message)).toEqual(['try 1', 'try 2', 'try 3'])
  await rig.rowlock.redrive(id)
  await until('it ran again', () => runs > 3)
  expect((await rig.becomes(id, 'dead_letter')).failures).toBe(3)
})

describe('backoff', () => {
  const delays = async (id: string) => {
    const row = await rig.becomes(id, 'retryable')
    return row.availableAt.getTime() - row.attempts.at(-1)!.endedAt.getTime()
  }

  test('the stored policy decides after a failure and after a loss', async () => {
    const policies = {
      fixed: [fixed('7m'), 420_000, 420_000],
      list: [list(['3m', '9m']), 180_000, 180_000],
      exponential: [exponential({ min: '10m', max: '1h', factor: 2 }), 600_000, 1_200_000],
    } as const
    const [failing, lost] = [defineJob<string>('failing'), defineJob<string>('lost')]
    await rig.start({
      handlers: [
        handle(failing, () => {
          throw new Error('no')
        }),
      ],
    })
    const dead = '00000000-0000-4000-8000-000000000001'
    await rig.db.sql(`select rowlock.register($1, '1 hour', '{}')`, [dead])
    for (const [name, [backoff, min, max]] of Object.entries(policies)) {
      const one = await rig.rowlock.enqueue(failing, name, { retry: { backoff } })
      const two = await rig.rowlock.enqueue(lost, name, { retry: { backoff } })
      await rig.db.sql('select rowlock.claim($1, $2)', [
        dead,
        JSON.stringify([{ queue: 'default', limit: 9, kinds: ['lost'] }]),
      ])
      for (const id of [one.id, two.id]) {
        if (id === two.id) {
          await rig.db.sql(
            `update rowlock.running set started_at = now(), worker_id = gen_random_uuid() where id = $1`,
            [id],
          )
          await reap(rig.db.database, 100, 5_000)
        }
        const delay = await delays(id)
        expect(delay, name).toBeGreaterThanOrEqual(min - 1)
        expect(delay, name).toBeLessThanOrEqual(max + 1)
      }
    }
  })

  test('retryIn decides instead; what it gets wrong falls back to the stored policy', async () => {
    const answers: Record<string, () => unknown> = {
      own: () => '2m',
      none: () => undefined,
      throws: never,
      hostile: () => {
        throw hostile
      },
      negative: () => -5,
      nan: () => Number.NaN,
      text: () => 'soon',
      promise: () => Promise.resolve(5),
      century: () => 3_650 * 86_400_000,
    }
    const seen: unknown[] = []
    await rig.start({
      handlers: [
        handle(
          job,
          ({ input }) => {
            throw new Error(input)
          },
          {
            retryIn: (error, { failures }) => {
              seen.push(failures)
              return answers[(error as Error).message]!() as never
            },
          },
        ),
      ],
    })
    for (const name of Object.keys(answers)) {
      const { id } = await rig.rowlock.enqueue(job, name, { retry: { backoff: fixed('1h') } })
      expect(Math.round((await delays(id)) / 1000), name).toBe(name === 'own' ? 120 : 3_600)
    }
    expect(seen.every((failures) => failures === 0)).toBe(true)
  })
})

describe('decisions', () => {
  test('a snoozed job runs again later and counts no failure', async () => {
    let runs = 0
    await rig.start({ handlers: [handle(job, () => (runs++ === 0 ? snooze('5m') : undefined))] })
    const { id } = await rig.rowlock.enqueue(job, '')
    const row = await until('it was snoozed', async () => {
      const found = await rig.rowlock.job(id)
      return found?.state === 'queued' && found.attempt === 1 ? found : undefined
    })
    expect(row.failures).toBe(0)
    const [attempt] = row.attempts
    expect(attempt).toMatchObject({ outcome: 'snoozed' })
    expect(Math.round((row.availableAt.getTime() - attempt!.endedAt.getTime()) / 1000)).toBe(300)
    await rig.rowlock.runNow(id)
    await rig.becomes(id, 'done')
  })

  test('a job can cancel itself, with its reason', async () => {
    await rig.start({ handlers: [handle(job, () => cancel('the order is gone'))] })
    const { id } = await rig.rowlock.enqueue(job, '')
    const row = await rig.becomes(id, 'cancelled')
    expect(row).toMatchObject({ reason: 'the order is gone', failures: 0 })
  })
})
