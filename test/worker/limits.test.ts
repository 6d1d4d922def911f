// Limits of a queue with real workers: several of them, quick to end jobs and slow to look by themselves.

import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { Slots } from '../../src/worker/slots.ts'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from './child-jobs.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('worker_limits')
  proxy = await startProxy(rig.db.url)
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
})
afterEach(async () => {
  await killChildren()
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job')
const many = (count: number, definition = job) => Array.from({ length: count }, (_, n) => definition.with(n))
const short = handle(job, () => new Promise<void>((resolve) => setTimeout(resolve, 5)))
const running = () => rig.db.value<number>('select count(*)::integer from rowlock.running')
/** One that hears, and does not look by itself for as long as a test may take. */
const deaf = { listen: true, poll: '5m', pollListening: '5m' } as const

/** The most that were claimed and not ended at the same time, attempts that were lost among them. */
const mostAtOnce = () =>
  rig.db.value<number>(
    `with spans (since, upto) as (
       select claimed_at, finished_at from rowlock.finished
        union all
       select claimed_at, ended_at from rowlock.attempt
     ), turns (at, n) as (select since, 1 from spans union all select upto, -1 from spans)
     select coalesce(max(r.running), 0)::integer
       from (select sum(n) over (order by at, n desc) as running from turns) as r`,
  )

describe('a limit on running jobs', () => {
  test('of 3 is used and never exceeded by four workers, who look only when a job ends', async () => {
    await rig.rowlock.setQueue('default', { maxRunning: 3 })
    for (let n = 0; n < 4; n++) await rig.start({ handlers: [short], ...deaf })
    await rig.rowlock.enqueueMany(many(100))
    await rig.idle()
    expect(await mostAtOnce()).toBe(3)
  })

  test('claims nothing ahead of a free slot, and gives back what was, when it is set', async () => {
    const ends: (() => void)[] = []
    const lasting = handle(job, () => new Promise<void>((resolve) => ends.push(resolve)))
    const queues = { default: { concurrency: 2, prefetch: 10 } }
    const worker = await rig.start({ handlers: [lasting], heartbeat: 100, queues })
    await rig.rowlock.enqueueMany(many(20))
    await until('ten are prefetched', () => ends.length === 2 && worker.status.prefetched === 10)
    await rig.rowlock.setQueue('default', { maxRunning: 50 })
    await until('they are given back', async () => (await running()) === 2)
    for (const end of ends.splice(0)) end()
    await until('two more run', () => ends.length === 2)
    expect([await running(), worker.status.prefetched]).toEqual([2, 0])
    await rig.rowlock.setQueue('default', { maxRunning: null })
    await until('it prefetches again', () => worker.status.prefetched === 10)
    const rest = setInterval(() => ends.splice(0).map((end) => end()), 5)
    await rig.idle().finally(() => clearInterval(rest))
  })

  test('tells of a free place those who handle what waits, where the one that made it does not', async () => {
    const other = defineJob<number>('other')
    await rig.rowlock.setQueue('default', { maxRunning: 1 })
    let end = () => {}
    const first = handle(job, () => new Promise<void>((resolve) => (end = resolve)))
    const one = await rig.start({ handlers: [first], ...deaf })
    await until('it hears', () => one.status.listening)
    await rig.rowlock.enqueue(job, 1)
    await until('it runs', async () => (await running()) === 1)
    const two = await rig.start({ handlers: [handle(other, () => {})], ...deaf })
    await until('it hears too', () => two.status.listening)
    const { id } = await rig.rowlock.enqueue(other, 1)
    await until('it was sent away', async () => rig.db.value('select is_awaited from rowlock.throttle'))
    end()
    await rig.becomes(id, 'done')
  })

  test('holds where a worker is killed and its jobs are given back', async () => {
    await rig.rowlock.setQueue('default', { maxRunning: 3 })
    const options = { heartbeat: 100, queues: { default: { concurrency: 2 } } }
    const victim = startChild('worker/child.ts', { url: rig.db.url, ledger: rig.db.url, options })
    await victim.until('it is ready', ({ ready }) => ready)
    const retry = { retry: { backoff: fixed(0), maxAttempts: 5 } }
    await rig.rowlock.enqueueMany(Array.from({ length: 2 }, () => jobs.work.with(600_000, retry)))
    await until('it has two', async () => (await running()) === 2)
    const work = handle(jobs.work, async () => {})
    for (let n = 0; n < 2; n++) await rig.start({ handlers: [work], heartbeat: 100 })
    await rig.rowlock.enqueueMany(Array.from({ length: 20 }, () => jobs.work.with(0)))
    victim.signal('SIGKILL')
    const done = `select count(*)::integer from rowlock.finished`
    await until('the others share what is left', async () => (await rig.db.value<number>(done)) === 20)
    expect(await mostAtOnce()).toBe(1)
    expect(await running()).toBe(2)
    await rig.db.sql(
      `update rowlock.worker set expires_at = rowlock.now() where (facts ->> 'pid')::integer <> $1`,
      [process.pid],
    )
    await rig.idle()
    expect(await mostAtOnce()).toBe(3)
  })

  test('takes one claim between the end of a job and the next start', async () => {
    await rig.rowlock.setQueue('default', { maxRunning: 1 })
    await rig.start(
      { handlers: [short], lease: '1h', heartbeat: '20m', poll: '5m', maintenance: '1h', listen: false },
      proxy.url,
    )
    await rig.rowlock.enqueueMany(many(21))
    const mark = proxy.statements.length
    await rig.rowlock.pause('default')
    await rig.rowlock.resume('default')
    await rig.idle()
    const verbs = proxy.statements
      .slice(mark)
      .flatMap(({ text }) => /"(claim|finish|start|sleep)"/.exec(text)?.[1] ?? [])
    // None comes before the outcome is written, and none after it but the one that takes the next job.
    expect(verbs.join(' ')).toMatch(/^(claim )*(finish claim ){20}/)
  })
})

describe('a rate', () => {
  test('holds over workers of which one is another in the middle, and what waits goes on by itself', async () => {
    await rig.rowlock.setQueue('default', { rate: { starts: 100, per: '1s', burst: 10 } })
    const first = await rig.start({ handlers: [short], ...deaf })
    await rig.start({ handlers: [short], ...deaf })
    await rig.rowlock.enqueueMany(many(120))
    const done = () => rig.db.value<number>('select count(*)::integer from rowlock.finished')
    await until('some are done', async () => (await done()) > 40)
    await first.stop()
    await rig.start({ handlers: [short], ...deaf })
    await rig.idle()
    const excess = await rig.db.value<number>(
      `with starts as (
         select extract(epoch from claimed_at)::float8 as at, row_number() over (order by claimed_at) as n
           from (select claimed_at from rowlock.finished union all select claimed_at from rowlock.attempt) as s)
       select max(b.n - a.n + 1 - (b.at - a.at) * 100) from starts a join starts b on b.n >= a.n`,
    )
    expect(excess).toBeLessThanOrEqual(10.001)
  })
})

test('a queue without a prefetch of its own is known to be limited all the same, and to be so no longer', () => {
  const slots = new Slots([{ queue: 'q', concurrency: 10, prefetch: 0, hasOwnPrefetch: true }], ['job'])
  // Nothing of what a claim asks for is another.
  expect(slots.resize({ q: { concurrency: null, limited: true } }).changed).toBe(false)
  expect(slots.isLimited('q')).toBe(true)
  slots.resize({})
  expect(slots.isLimited('q')).toBe(false)
})

test('a limited queue has no prefetch, whatever its worker was started with', () => {
  const own = { queue: 'q', concurrency: 10, prefetch: 7, hasOwnPrefetch: true }
  const slots = new Slots([own], ['job'])
  expect(slots.wants()).toMatchObject([{ limit: 17 }])
  expect(slots.resize({ q: { concurrency: null, limited: true } }).changed).toBe(true)
  expect(slots.wants()).toMatchObject([{ limit: 10 }])
  expect(slots.resize({ q: { concurrency: 4, limited: true } }).changed).toBe(true)
  expect(slots.wants()).toMatchObject([{ limit: 4 }])
  slots.resize({})
  expect(slots.wants()).toMatchObject([{ limit: 17 }])
})
