// Workers that die, freeze or take their process down: what becomes of their jobs.

import { fixed, handle, type Worker } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Child, killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from './child-jobs.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('crash')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
  await rig.db.sql('create table business (job_id bigint)')
})
beforeEach(() => rig.db.sql('truncate ledger, business'))
afterEach(async () => {
  await killChildren()
  await rig.rest()
})
afterAll(() => rig.drop())

const again = { retry: { backoff: fixed(0), maxAttempts: 5 } }
const child = (options: object = {}): Child =>
  startChild('worker/child.ts', {
    url: rig.db.url,
    ledger: rig.db.url,
    options: { heartbeat: 100, ...options },
  })
/** For those who died: nobody else may hold a lease. */
const endLeases = () => rig.db.sql(`update rowlock.worker set expires_at = rowlock.now()`)
const running = (worker: Child) => worker.until('it is ready', ({ ready }) => ready)
const work = handle(jobs.work, async () => {})
const gated = handle(jobs.gated, async () => {})
/** Give it every chance to start what it may still hold: it takes another job, alone. Answers what it has started. */
const startsOf = async (worker: Child, other: Worker) => {
  await other.stop()
  await until('it is back under another name', () => {
    return worker.said.filter(({ event }) => event === 'leased').length > 1
  })
  const { id } = await rig.rowlock.enqueue(jobs.work, 0)
  await rig.becomes(id, 'done')
  worker.send({ stop: { grace: 0 } })
  await worker.until('it has stopped', ({ event }) => event === 'stopped')
  return worker.said.flatMap(({ started }) => started ?? []).filter((started) => started !== id)
}
const faults = (worker: Child) => worker.said.filter(({ fault, warning }) => fault || warning)

test('jobs of a killed worker run again: started ones with one failure, the others with none', async () => {
  const worker = child({ queues: { default: { concurrency: 2, prefetch: 3 } } })
  await running(worker)
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 5 }, () => jobs.work.with(600_000, again)))
  await until('two have started and are known to, three are prefetched', async () => {
    const [row] = await rig.db.sql(`select count(*)::integer as held, count(started_at)::integer as started
      from rowlock.running`)
    return row.held === 5 && row.started === 2 && worker.said.filter(({ started }) => started).length === 2
  })
  const started = new Set(worker.said.flatMap(({ started }) => started ?? []))
  worker.signal('SIGKILL')
  await worker.ended()
  await endLeases()
  await rig.start({ handlers: [work] })
  await rig.idle()
  for (const { id } of all) {
    const row = await rig.becomes(id, 'done')
    expect(row).toMatchObject({ attempt: 2, failures: started.has(id) ? 1 : 0 })
    expect(row.attempts).toMatchObject([
      { outcome: 'lost', cause: 'lease_lost', startedAt: started.has(id) ? expect.anything() : null },
    ])
  }
  expect(started.size).toBe(2)
})

test('a frozen worker that thaws changes nothing: its jobs ran elsewhere, each ends once', async () => {
  const worker = child({ queues: { default: { concurrency: 2, prefetch: 2 } }, lease: 4_000 })
  await running(worker)
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 4 }, () => jobs.gated.with(0, again)))
  await until(
    'two have begun',
    async () => (await rig.db.sql(`select from ledger where phase = 'start'`)).length === 2,
  )
  worker.signal('SIGSTOP')
  // Heard when it thaws, first of all.
  worker.send({ goOn: true })
  const other = await rig.start({ handlers: [work, gated] })
  await rig.idle()
  const ended = await rig.db.sql('select id, finished_at, worker_id from rowlock.finished order by id')
  worker.signal('SIGCONT')
  await worker.until('it notices', ({ event }) => event === 'lease_lost')
  await until('its handlers have ended', async () => {
    return (await rig.db.sql(`select from ledger where phase = 'end'`)).length === 2
  })
  // Prefetched jobs of the old identity never start.
  expect(await startsOf(worker, other)).toHaveLength(2)
  const now = 'select id, finished_at, worker_id from rowlock.finished where id = any ($1) order by id'
  expect(await rig.db.sql(now, [all.map(({ id }) => id)])).toEqual(ended)
  expect(ended).toHaveLength(all.length)
  expect(faults(worker)).toEqual([])
})

test('a worker that was frozen for less than its lease goes on as if nothing had been', async () => {
  const worker = child({ lease: 30_000 })
  await running(worker)
  const { id } = await rig.rowlock.enqueue(jobs.work, 300, again)
  await worker.until('it has begun', ({ started }) => started === id)
  worker.signal('SIGSTOP')
  await rig.db.sql('select pg_sleep(0.5)')
  worker.signal('SIGCONT')
  expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1 })
  expect(worker.said.some(({ event }) => event === 'lease_lost')).toBe(false)
})

test('a handler that blocks its process for half a lease is survived', async () => {
  const worker = child({ lease: 8_000 })
  await running(worker)
  const [block, beside] = await rig.rowlock.enqueueMany([
    jobs.block.with(4_000, again),
    jobs.work.with(4_500, again),
  ])
  expect(await rig.becomes(block!.id, 'done')).toMatchObject({ attempt: 1 })
  expect(await rig.becomes(beside!.id, 'done')).toMatchObject({ attempt: 1 })
  expect(worker.said.some(({ event }) => event === 'lease_lost')).toBe(false)
})

test('one that blocks it for three leases is noticed: what was prefetched never starts here', async () => {
  const worker = child({ queues: { default: { concurrency: 2, prefetch: 2 } }, lease: 4_000 })
  await running(worker)
  const [beside] = await rig.rowlock.enqueueMany([jobs.work.with(600_000, again)])
  await worker.until('the neighbour has begun', ({ started }) => started === beside!.id)
  const [block, ...waiting] = await rig.rowlock.enqueueMany([
    jobs.block.with(12_000, again),
    jobs.work.with(0, again),
    jobs.work.with(0, again),
  ])
  await worker.until('it blocks', ({ blocking }) => blocking === block!.id)
  const other = await rig.start({ handlers: [work, handle(jobs.block, () => {})] })
  await worker.until('it notices', ({ event }) => event === 'lease_lost')
  await rig.idle()
  expect(await startsOf(worker, other)).toEqual([beside!.id])
  for (const one of [beside, block, ...waiting]) {
    const row = await rig.becomes(one!.id, 'done')
    expect(row.attempt).toBe(2)
  }
})

test('a job that takes its process down becomes a dead letter and drags no neighbour along', async () => {
  const poison = await rig.rowlock.enqueue(jobs.poison, 0, { retry: { backoff: fixed(0), maxAttempts: 2 } })
  const neighbours = await rig.rowlock.enqueueMany(
    Array.from({ length: 6 }, () => jobs.work.with(20, { retry: { backoff: fixed(0), maxAttempts: 4 } })),
  )
  let deaths = 0
  for (let isDead = false; !isDead; ) {
    const worker = child({ queues: { default: { concurrency: 3, prefetch: 5 } } })
    isDead = await until('it dies, or the poison is a dead letter', async () => {
      if ((await rig.rowlock.job(poison.id))?.state === 'dead_letter') return { isDead: true }
      return worker.end && { isDead: false }
    }).then((seen) => seen.isDead)
    if (isDead) break
    expect(worker.end).toMatchObject({ code: 3 })
    deaths++
    await endLeases()
  }
  // Twice among others, and then alone, where it counts.
  expect(deaths).toBeGreaterThanOrEqual(3)
  expect(deaths).toBeLessThanOrEqual(5)
  await rig.idle()
  for (const { id } of neighbours) await rig.becomes(id, 'done')
  const row = await rig.rowlock.job(poison.id)
  expect(row?.attempts.every(({ outcome }) => outcome === 'lost')).toBe(true)
}, 240_000)

test('the writes of a worker that was killed are gone, and its job runs again before the lease is over', async () => {
  // The eldest worker reaps; the one that dies must not be it.
  await rig.start({ handlers: [work] })
  const worker = child({ lease: 60_000 })
  await running(worker)
  const { id } = await rig.rowlock.enqueue(jobs.write, 600_000, again)
  await worker.until('it has written', ({ wrote }) => wrote === id)
  worker.signal('SIGKILL')
  await worker.ended()
  const next = child({ lease: 60_000 })
  await next.until('the next one has written', ({ wrote }) => wrote === id)
  expect(await rig.db.value('select count(*)::integer from business')).toBe(0)
  expect((await rig.rowlock.job(id))?.attempts).toMatchObject([{ outcome: 'lost' }])
})
