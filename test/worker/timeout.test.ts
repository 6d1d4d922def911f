// What happens when a handler takes too long, and when it does not listen.

import { defineJob, fixed, handle, isAborted } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from './child-jobs.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('timeout')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
})
afterEach(async () => {
  await killChildren()
  await rig.rest()
})
afterAll(() => rig.drop())

const job = defineJob<string, string>('slow', { timeout: 60, retry: { backoff: fixed('1h') } })
const quick = defineJob('quick', { timeout: '1m' })

/** Deaf handlers, and the way to let them end. */
function deaf() {
  const ends: ((value: string) => void)[] = []
  const handler = handle(job, () => new Promise<string>((resolve) => ends.push(resolve)))
  return { handler, ends }
}

test('at its timeout a handler is told why, and what it throws then is a timeout', async () => {
  const reasons: unknown[] = []
  const handler = handle(
    job,
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          reject(new Error('gave up'))
        })
      }),
  )
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'retryable')
  expect(isAborted(reasons[0], 'timeout')).toBe(true)
  expect(row).toMatchObject({
    cause: 'timeout',
    failures: 1,
    attempts: [{ outcome: 'timed_out', cause: 'timeout', error: { message: 'gave up' } }],
  })
})

test('a handler that ends well within the grace is done', async () => {
  const handler = handle(
    job,
    ({ signal }) =>
      new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('just in time'))),
  )
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect((await rig.becomes(id, 'done')).result).toBe('just in time')
})

test('a deaf handler: its attempt timed out, its slot stays taken, its late result is refused', async () => {
  const { handler, ends } = deaf()
  const told: unknown[] = []
  const queues = { default: { concurrency: 1, prefetch: 0 } }
  const worker = await rig.start({
    handlers: [handler, handle(quick, () => {})],
    queues,
    abortGrace: 50,
    heartbeat: 100,
  })
  worker.on('stuck', (facts) => told.push(facts))
  const lost: unknown[] = []
  worker.on('outcome_lost', (facts) => lost.push(facts))
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'retryable')
  expect(row.attempts).toMatchObject([
    { outcome: 'timed_out', cause: 'timeout', error: { name: 'HandlerStuck' } },
  ])
  expect(told).toEqual([{ jobId: id, kind: 'slow', stuck: 1 }])
  expect(worker.status).toMatchObject({ running: 1, stuck: 1 })
  const next = await rig.rowlock.enqueue(quick, null)
  await until('a heartbeat has told of it', () =>
    rig.db.value(`select (facts ->> 'stuck')::integer = 1 from rowlock.worker`),
  )
  expect((await rig.rowlock.job(next.id))?.state).toBe('queued')
  ends[0]!('late')
  await rig.becomes(next.id, 'done')
  await worker.stop()
  expect(worker.status).toMatchObject({ running: 0, stuck: 0 })
  expect(lost).toEqual([])
  expect((await rig.rowlock.job(id))?.state).toBe('retryable')
})

test('a deaf handler is told of at once, and who waits for its slot learns which worker to restart', async () => {
  const { handler, ends } = deaf()
  const queues = { default: { concurrency: 1, prefetch: 0 } }
  const handlers = [handler, handle(quick, () => {})]
  await rig.start({ handlers, queues, abortGrace: 50, lease: '1h', heartbeat: '20m', name: 'deaf one' })
  const { id } = await rig.rowlock.enqueue(job, '')
  await rig.becomes(id, 'retryable')
  const next = await rig.rowlock.enqueue(quick, null)
  const reason = await until('it is told', async () => {
    const [first] = await rig.rowlock.why(next.id)
    return first?.reason === 'workers_full' ? first : undefined
  })
  expect(reason).toMatchObject({ detail: { slots: 1, held: 0, stuck: 1 } })
  expect(reason.says).toMatch(/1 slot\(s\) are held by .* their signal: restart worker deaf one/)
  expect(await rig.rowlock.workers()).toMatchObject([{ queues: { default: { running: 1, stuck: 1 } } }])
  ends[0]!('late')
  await rig.becomes(next.id, 'done')
})

test('a job within the timeout of its kind is accused of nothing, for its worker tells that', async () => {
  const long = defineJob<string>('long', { timeout: '1h' })
  const ends: (() => void)[] = []
  const handler = handle(long, () => new Promise<void>((resolve) => ends.push(resolve)))
  await rig.start({ handlers: [handler], heartbeat: 100 })
  // From SQL, where nobody knows the definition: the row has no timeout.
  const id = await rig.db.value<string>(`select id::text from rowlock.enqueue('long', '""')`)
  await until('it is seen to run', () => rig.db.value('select started_at is not null from rowlock.running'))
  await rig.db.sql(`update rowlock.running set started_at = started_at - interval '20 min'`)
  expect(await rig.rowlock.why(id)).toMatchObject([{ reason: 'running' }])
  ends[0]!()
  await rig.becomes(id, 'done')
})

test('too many stuck handlers end the worker, and its process says so to its supervisor', async () => {
  const child = startChild('worker/child.ts', {
    url: rig.db.url,
    ledger: rig.db.url,
    options: { stuckSlots: 2, abortGrace: 50, grace: 0 },
  })
  await child.until('it is ready', ({ ready }) => ready)
  const all = await rig.rowlock.enqueueMany([1, 2].map(() => jobs.deaf.with(0, { timeout: 50 })))
  expect(await child.ended()).toEqual({ code: 1, signal: null })
  expect(child.said.find(({ event }) => event === 'stopped')).toMatchObject({ fit: false })
  for (const { id } of all) {
    expect(await rig.rowlock.job(id)).toMatchObject({
      state: 'retryable',
      attempts: [{ outcome: 'timed_out' }],
    })
  }
  await until(
    'its row is gone',
    async () => (await rig.db.value('select count(*)::integer from rowlock.worker')) === 0,
  )
})

test('a job that must run alone waits for no stuck handler', async () => {
  const { handler, ends } = deaf()
  await rig.start({
    handlers: [handler, handle(quick, () => {})],
    queues: { default: { concurrency: 2, prefetch: 2 } },
    abortGrace: 300,
  })
  await rig.rowlock.enqueue(job, '')
  await until('the deaf one runs', () => ends.length === 1)
  const { id } = await rig.rowlock.enqueue(quick, null, { delay: '1h' })
  await rig.db.sql('update rowlock.waiting set losses = 2 where id = $1', [id])
  await rig.rowlock.runNow(id)
  await rig.becomes(id, 'done')
  const next = await rig.rowlock.enqueue(quick, null)
  await rig.becomes(next.id, 'done')
  for (const end of ends) end('')
})

test('a job that must run alone runs alone, and what was prefetched goes back without a failure', async () => {
  let running = 0
  let most = 0
  let open: () => void = () => {}
  const isDue = new Promise<void>((resolve) => {
    open = resolve
  })
  const handler = handle(quick, async ({ job }) => {
    running++
    if (job.priority === 1) most = Math.max(most, running)
    await isDue
    await new Promise((resolve) => setTimeout(resolve, 60))
    if (job.priority === 1) most = Math.max(most, running)
    running--
  })
  const worker = await rig.start({
    handlers: [handler],
    queues: { default: { concurrency: 2, prefetch: 4 } },
  })
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 12 }, () => quick.with(null)))
  const alone = await rig.rowlock.enqueue(quick, null, { delay: '1h', priority: 1 })
  await rig.db.sql('update rowlock.waiting set losses = 2 where id = $1', [alone.id])
  await until('others run', () => worker.status.running === 2)
  await rig.rowlock.runNow(alone.id)
  open()
  await rig.idle()
  expect(most).toBe(1)
  for (const { id } of all) expect(await rig.rowlock.job(id)).toMatchObject({ state: 'done', failures: 0 })
})
