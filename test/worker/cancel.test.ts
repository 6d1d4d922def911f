// Jobs that are cancelled by somebody else while a worker has them.

import { defineJob, handle, isAborted } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('cancel')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<string>('long')
const reasons: unknown[] = []
const starts: string[] = []
/** Ends at its abort: well, or by a throw, or never, as its input says. */
const handler = handle(
  job,
  ({ input, signal, job: { id } }) =>
    new Promise<void>((resolve, reject) => {
      starts.push(id)
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        if (input === 'well') resolve()
        if (input === 'throws') reject(new Error('as you wish'))
      })
    }),
)
const running = async (input: string) => {
  starts.length = 0
  reasons.length = 0
  const { id } = await rig.rowlock.enqueue(job, input)
  await until('it runs', () => starts.includes(id))
  return id
}

test('a worker that listens notices at once, with the reason', async () => {
  const worker = await rig.start({ handlers: [handler], listen: true, lease: '1h', heartbeat: '20m' })
  await until('it listens', () => worker.status.listening)
  const id = await running('throws')
  expect(await rig.rowlock.cancel(id, { actor: 'ann', reason: 'ordered twice' })).toBe('requested')
  const row = await rig.becomes(id, 'cancelled')
  expect(row).toMatchObject({ actor: 'ann', reason: 'ordered twice', failures: 1 })
  expect(isAborted(reasons[0], 'cancelled')).toBe(true)
  expect((reasons[0] as Error).message).toContain('ordered twice')
})

test('one that does not listen notices with its next heartbeat', async () => {
  await rig.start({ handlers: [handler], heartbeat: 100 })
  const id = await running('throws')
  expect(await rig.rowlock.cancel(id)).toBe('requested')
  await rig.becomes(id, 'cancelled')
})

test('a handler that ends well all the same is done', async () => {
  await rig.start({ handlers: [handler], heartbeat: 100 })
  const id = await running('well')
  await rig.rowlock.cancel(id)
  await rig.becomes(id, 'done')
  expect(isAborted(reasons[0], 'cancelled')).toBe(true)
  expect(await rig.db.value('select count(*)::integer from rowlock.cancel_request')).toBe(0)
})

test('one that does not listen to its signal is waited for until its timeout', async () => {
  const worker = await rig.start({ handlers: [handler], heartbeat: 100, abortGrace: 50 })
  starts.length = 0
  const { id } = await rig.rowlock.enqueue(job, 'never', { timeout: 700 })
  await until('it runs', () => starts.includes(id))
  await rig.rowlock.cancel(id)
  const row = await rig.becomes(id, 'cancelled')
  expect(row.finishedAt!.getTime() - row.claimedAt!.getTime()).toBeGreaterThan(600)
  expect(worker.status.stuck).toBe(1)
})

test('a prefetched job that is cancelled never starts', async () => {
  const worker = await rig.start({
    handlers: [handler],
    heartbeat: 100,
    queues: { default: { concurrency: 1, prefetch: 1 } },
  })
  const first = await running('well')
  const { id } = await rig.rowlock.enqueue(job, 'well')
  await until('it is prefetched', () => worker.status.prefetched === 1)
  expect(await rig.rowlock.cancel(id)).toBe('requested')
  expect(await rig.becomes(id, 'cancelled')).toMatchObject({ startedAt: null })
  await rig.rowlock.cancel(first)
  await rig.becomes(first, 'done')
  expect(starts).toEqual([first])
})
