// Running a handler in a test of its own: what passes here passes in a worker, without a database.

import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  cancel,
  defineJob,
  handle,
  handleInTransaction,
  permanent,
  type Queryable,
  snooze,
} from '../../src/index.ts'
import { runJob } from '../../src/testing/index.ts'

const note = defineJob<any, any>('note', { queue: 'notes', priority: 3, retry: { maxAttempts: 4 } })
const silent = { debug() {}, info() {}, warn() {}, error() {} }

test('a handler that returns is done, with its result as JSON makes it', async () => {
  const at = new Date('2030-01-01T00:00:00Z')
  const ran = await runJob(
    handle(note, ({ input }) => ({ got: input, at })),
    { a: 1, gone: undefined },
  )
  expect(ran).toEqual({ outcome: 'done', result: { got: { a: 1 }, at: at.toISOString() } })
})

test('a handler that returns nothing is done', async () => {
  expect(
    await runJob(
      handle(note, () => {}),
      1,
    ),
  ).toEqual({ outcome: 'done', result: undefined })
})

test('a handler that throws has failed, with the very error, its cause, and whether it is permanent', async () => {
  const error = Object.assign(new Error('no'), { code: 'ENOPE' })
  const failing = (thrown: unknown) =>
    runJob(
      handle(note, () => {
        throw thrown
      }),
      1,
    )
  expect(await failing(error)).toEqual({ outcome: 'failed', cause: 'ENOPE', error, permanent: false })
  expect(await failing(permanent(error))).toMatchObject({ outcome: 'failed', permanent: true })
  expect(await failing('just text')).toMatchObject({
    outcome: 'failed',
    error: 'just text',
    permanent: false,
  })
  expect(await failing(undefined)).toMatchObject({ outcome: 'failed', permanent: false })
})

test('a decision that is returned is the outcome', async () => {
  expect(
    await runJob(
      handle(note, () => snooze('5m')),
      1,
    ),
  ).toEqual({ outcome: 'snoozed', delayMs: 300_000 })
  expect(
    await runJob(
      handle(note, () => cancel('no more')),
      1,
    ),
  ).toEqual({ outcome: 'cancelled', reason: 'no more' })
  expect(
    await runJob(
      handle(note, () => cancel()),
      1,
    ),
  ).toEqual({ outcome: 'cancelled' })
})

const mail = defineJob('mail', {
  input: z.object({
    to: z.email(),
    at: z.coerce.date<Date | string>(),
    template: z.string().default('welcome'),
  }),
  result: z.object({ messageId: z.string() }),
})

test('the handler gets what the schema makes of the JSON, as in a worker', async () => {
  const seen: unknown[] = []
  const at = new Date('2030-01-01T00:00:00Z')
  await runJob(
    handle(mail, ({ input }) => {
      seen.push(input)
      return { messageId: 'x' }
    }),
    { to: 'ada@example.org', at },
  )
  expect(seen).toEqual([{ to: 'ada@example.org', at, template: 'welcome' }])
})

test('an input that could not be enqueued is refused as enqueue refuses it', async () => {
  const send = handle(mail, () => ({ messageId: 'x' }))
  await expect(runJob(send, { to: 'nobody', at: '2030-01-01' })).rejects.toMatchObject({
    code: 'INPUT_REFUSED',
  })
  await expect(
    runJob(
      handle(note, () => {}),
      { a: 1n },
    ),
  ).rejects.toMatchObject({
    code: 'INPUT_NOT_STORABLE',
    path: 'a',
  })
})

test('a result that the job does not promise is a permanent failure', async () => {
  const ran = await runJob(
    handle(mail, () => ({ messageId: 5 as never })),
    { to: 'ada@example.org', at: new Date() },
  )
  expect(ran).toMatchObject({ outcome: 'failed', cause: 'validation', permanent: true })
})

test('a result that cannot be stored is done, and says so in its place', async () => {
  const ran = await runJob(
    handle(note, () => 1n),
    1,
    { logger: silent },
  )
  expect(ran).toMatchObject({ outcome: 'done', result: { unstorable: expect.stringMatching(/Map|stor/) } })
})

test('the handler sees the job as it is defined, and what the test says of it', async () => {
  const seen: any[] = []
  const look = handle(
    note,
    ({ job, idempotencyKey, signal }) => void seen.push({ job, idempotencyKey, signal }),
  )
  await runJob(look, 1)
  expect(seen[0].job).toMatchObject({
    kind: 'note',
    queue: 'notes',
    priority: 3,
    attempt: 1,
    failures: 0,
    maxAttempts: 4,
  })
  expect(seen[0].idempotencyKey).toEqual(expect.any(String))
  const controller = new AbortController()
  await runJob(look, 1, {
    job: { id: '77', attempt: 3, failures: 2, tenantId: 'acme', metadata: { trace: 'x' } },
    idempotencyKey: 'key',
    signal: controller.signal,
  })
  expect(seen[1]).toMatchObject({
    job: { id: '77', attempt: 3, failures: 2, tenantId: 'acme', metadata: { trace: 'x' } },
    idempotencyKey: 'key',
  })
  expect(seen[1].signal).toBe(controller.signal)
})

test('a signal that the test aborts reaches the handler', async () => {
  const controller = new AbortController()
  const waits = handle(note, ({ signal }) => {
    const ended = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    controller.abort(new Error('stop'))
    return ended
  })
  expect(await runJob(waits, 1, { signal: controller.signal })).toMatchObject({
    outcome: 'failed',
    error: new Error('stop'),
  })
})

test('a transactional handler writes through the tx of the test, and is refused without one', async () => {
  const written: string[] = []
  const tx: Queryable = {
    query: async (text) => {
      written.push(text)
      return { rows: [{ n: 1 }] }
    },
  }
  const post = handleInTransaction(note, async ({ tx }) => (await tx.query('insert …')).rows)
  expect(await runJob(post, 1, { tx })).toEqual({ outcome: 'done', result: [{ n: 1 }] })
  expect(written).toEqual(['insert …'])
  await expect(runJob(post, 1)).rejects.toMatchObject({ code: 'INVALID_OPTION', path: 'tx' })
})
