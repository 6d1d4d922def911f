// What the compiler knows and refuses. Checked by `npm run types`; running it proves little.

import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import {
  cancel,
  createRowlock,
  type Decision,
  type Duration,
  defineJob,
  type Enqueued,
  handle,
  handleInTransaction,
  type InputOf,
  type OutputOf,
  type Queryable,
  type ResultOf,
  type Rowlock,
  snooze,
} from '../../src/index.ts'

const mail = defineJob('mail', {
  input: z.object({ to: z.string(), at: z.coerce.date<string>(), template: z.string().default('welcome') }),
  result: z.object({ messageId: z.string() }),
})
const plain = defineJob('plain')
const sum = defineJob<{ readonly n: number }, number>('sum')
const loose = defineJob('loose')
const rowlock = undefined as unknown as Rowlock

/** Compiled, never run. */
const compiled = (_: () => unknown): void => {}

describe('a definition', () => {
  test('knows what goes in, what the handler gets, and what it returns', () => {
    expectTypeOf<InputOf<typeof mail>>().toEqualTypeOf<{
      to: string
      at: string
      template?: string | undefined
    }>()
    expectTypeOf<OutputOf<typeof mail>>().toEqualTypeOf<{ to: string; at: Date; template: string }>()
    expectTypeOf<ResultOf<typeof mail>>().toEqualTypeOf<{ messageId: string }>()
    expectTypeOf<InputOf<typeof sum>>().toEqualTypeOf<{ readonly n: number }>()
    expectTypeOf<ResultOf<typeof sum>>().toEqualTypeOf<number>()
    expectTypeOf<InputOf<typeof loose>>().toEqualTypeOf<unknown>()
    expectTypeOf(mail.kind).toEqualTypeOf<'mail'>()
  })

  test('takes lengths of time in ms or with a unit that exists', () => {
    expectTypeOf<'30s'>().toExtend<Duration>()
    expectTypeOf<30_000>().toExtend<Duration>()
    expectTypeOf<'30x'>().not.toExtend<Duration>()
    expectTypeOf<'soon'>().not.toExtend<Duration>()
    compiled(() => defineJob('x', { timeout: '30s' }))
    // @ts-expect-error there is no unit x
    compiled(() => defineJob('x', { timeout: '30x' }))
    // @ts-expect-error a slip
    compiled(() => defineJob('x', { timout: '30s' }))
  })
})

describe('enqueue', () => {
  test('takes the input of the job', () => {
    compiled(() => rowlock.enqueue(mail, { to: 'ada', at: '2030-01-01' }))
    compiled(() => rowlock.enqueue(sum, { n: 1 }, { delay: '10m', tenantId: undefined }))
    // @ts-expect-error a number is no address
    compiled(() => rowlock.enqueue(mail, { to: 5, at: '2030-01-01' }))
    // @ts-expect-error a field is missing
    compiled(() => rowlock.enqueue(mail, { to: 'ada' }))
    // @ts-expect-error there is no unit x
    compiled(() => rowlock.enqueue(sum, { n: 1 }, { delay: '30x' }))
    // @ts-expect-error a slip
    compiled(() => rowlock.enqueue(sum, { n: 1 }, { dedupekey: 'k' }))
  })

  test('takes many jobs of different kinds, each with its own input', () => {
    compiled(() =>
      rowlock.enqueueMany([mail.with({ to: 'ada', at: 'x' }, { priority: 5 }), sum.with({ n: 1 })]),
    )
    compiled(() => rowlock.enqueueMany(new Set([sum.with({ n: 1 }), mail.with({ to: 'a', at: 'x' })])))
    compiled(() =>
      rowlock.enqueueMany(
        (async function* () {
          yield mail.with({ to: 'ada', at: 'x' })
          yield sum.with({ n: 1 })
        })(),
      ),
    )
    // @ts-expect-error an input of another job
    compiled(() => rowlock.enqueueMany([sum.with({ to: 'ada' })]))
    // @ts-expect-error a definition is no request
    compiled(() => rowlock.enqueueMany([sum]))
    // @ts-expect-error one request is not many
    compiled(() => rowlock.enqueueMany(sum.with({ n: 1 })))
  })

  test('answers an id and whether it was created, never null', () => {
    expectTypeOf<Awaited<ReturnType<Rowlock['enqueue']>>>().toEqualTypeOf<Enqueued>()
    expectTypeOf<Awaited<ReturnType<Rowlock['enqueueMany']>>>().toEqualTypeOf<Enqueued[]>()
    expectTypeOf<Enqueued>().toEqualTypeOf<{
      readonly id: string
      readonly created: boolean
      readonly reason?: 'queue_full'
    }>()
  })
})

describe('a handler', () => {
  test('gets the output of the schema and must return the input of the result schema', () => {
    handle(mail, ({ input, signal, job }) => {
      expectTypeOf(input).toEqualTypeOf<{ to: string; at: Date; template: string }>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      expectTypeOf(job.id).toEqualTypeOf<string>()
      return { messageId: 'x' }
    })
    handle(sum, async ({ input }) => input.n + 1)
    // @ts-expect-error a number is no message id
    handle(mail, () => ({ messageId: 5 }))
    // @ts-expect-error a text is no sum
    handle(sum, async () => 'x')
  })

  test('may return a decision, or nothing where no result is promised', () => {
    handle(mail, ({ input }) => (input.to === '' ? snooze('5m') : { messageId: 'x' }))
    handle(mail, async ({ input }) => (input.to === '' ? cancel('no address') : { messageId: 'x' }))
    handle(plain, () => {})
    handle(plain, async ({ input }) => (input === null ? cancel('no input') : undefined))
    // @ts-expect-error its job promises a result
    handle(mail, () => {})
    expectTypeOf(snooze('5m')).toExtend<Decision>()
    // @ts-expect-error there is no unit x
    compiled(() => snooze('5x'))
  })

  test('in a transaction gets a tx, another does not', () => {
    handleInTransaction(sum, async ({ tx, input }) => {
      expectTypeOf(tx).toEqualTypeOf<Queryable>()
      expectTypeOf(input.n).toEqualTypeOf<number>()
      return input.n
    })
    // @ts-expect-error no transaction, no tx
    handle(sum, ({ tx }) => tx)
  })

  test('stands in one list with handlers of other jobs', () => {
    compiled(() => rowlock.worker({ handlers: [handle(plain, () => {}), handleInTransaction(sum, () => 1)] }))
    // @ts-expect-error a slip
    compiled(() => rowlock.worker({ handlers: [], concurency: 4 }))
  })
})

test('a client takes an address or a pool of pg', () => {
  compiled(() => createRowlock({ connectionString: 'postgres://x', schema: 'jobs' }))
  compiled(async () => {
    const { default: pg } = await import('pg')
    const pool = new pg.Pool()
    const client = createRowlock({ pool })
    client.in(await pool.connect())
    client.in(new pg.Client())
    return client
  })
  // @ts-expect-error a slip
  compiled(() => createRowlock({ connectionstring: 'postgres://x' }))
  expectTypeOf<Rowlock['cancel']>().returns.resolves.toEqualTypeOf<
    'cancelled' | 'requested' | 'already_ended'
  >()
})
