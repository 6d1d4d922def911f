// The database goes away, at the start, in the middle, at the worst moment; and comes back.

import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { isPooled } from '../support/server.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('outage')
  proxy = await startProxy(rig.db.url)
})
afterEach(async () => {
  await proxy.set('pass')
  proxy.hold(undefined)
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job', { retry: { backoff: fixed(0) } })
/** Short enough to be waited for, and longer than a busy machine lets a process wait for its turn. */
const fast = { lease: 4_000, heartbeat: 400, listen: true } as const

test('a server that is away at the start is waited for', async () => {
  await proxy.set('refuse')
  const worker = await rig.start({ ...fast, handlers: [handle(job, () => {})] }, proxy.url)
  expect(worker.status).toMatchObject({ state: 'running', workerId: null })
  const { id } = await rig.rowlock.enqueue(job, 1)
  await proxy.set('pass')
  await rig.becomes(id, 'done')
  if (!isPooled()) await until('it listens', () => worker.status.listening)
})

describe.each(['refuse', 'blackhole'] as const)('an outage by %s', (mode) => {
  test('for longer than the lease loses nothing, and every job ends once', async () => {
    const runs = new Map<string, number>()
    const handler = handle(job, async ({ job: { id } }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, 10))
    })
    const worker = await rig.start({ ...fast, handlers: [handler] }, proxy.url)
    const lost: string[] = []
    worker.on('lease_lost', ({ workerId }) => lost.push(workerId))
    const first = worker.status.workerId
    const all = await rig.rowlock.enqueueMany(Array.from({ length: 300 }, (_, n) => job.with(n)))
    await until('it is in the middle', () => runs.size > 50)
    await proxy.set(mode)
    if (mode === 'refuse') proxy.reset()
    await until('the lease is lost', () => lost.length > 0)
    expect(worker.status).toMatchObject({ workerId: null, prefetched: 0 })
    const started = runs.size
    await until('the lease is over at the server as well', () =>
      rig.db.value('select bool_and(expires_at < now()) from rowlock.worker'),
    )
    expect(runs.size).toBe(started)
    const held = await rig.db.sql('select id::text from rowlock.running')
    if (mode === 'blackhole') proxy.reset()
    await proxy.set('pass')
    await rig.idle()
    expect(lost).toEqual([first])
    expect(worker.status.workerId).not.toBe(first)
    for (const { id } of all) await rig.becomes(id, 'done')
    expect(await rig.db.value('select count(*)::integer from rowlock.finished')).toBe(300)
    // Twice at most, and only those that were running, prefetched or unreported at the time.
    expect(Math.max(...runs.values())).toBeLessThanOrEqual(2)
    const twice = [...runs].filter(([, n]) => n > 1).map(([id]) => id)
    expect(held.map(({ id }) => id)).toEqual(expect.arrayContaining(twice))
  })
})

test('a heartbeat that does not come through costs the lease, though everything else works', async () => {
  const aborts: unknown[] = []
  let begun = 0
  const handler = handle(job, ({ input, signal, job: { attempt } }) => {
    begun++
    if (input === 2 || attempt > 1) return
    return new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        aborts.push((signal.reason as { code: string }).code)
        resolve()
      })
    })
  })
  const worker = await rig.start({ ...fast, handlers: [handler] }, proxy.url)
  const first = worker.status.workerId
  const { id } = await rig.rowlock.enqueue(job, 1)
  await until('it runs', () => begun === 1)
  proxy.hold('rowlock heartbeat')
  await until('the handler is aborted', () => aborts.length === 1)
  expect(aborts).toEqual(['lease_lost'])
  const next = await rig.rowlock.enqueue(job, 2)
  await rig.db.sql('select pg_sleep(0.3)')
  expect((await rig.rowlock.job(next.id))?.attempt).toBe(0)
  proxy.hold(undefined)
  await rig.becomes(id, 'done')
  await rig.becomes(next.id, 'done')
  expect(worker.status.workerId).not.toBe(first)
})

test('a heartbeat that arrives after its lease was over extends nothing', async () => {
  const worker = await rig.start({ ...fast, handlers: [handle(job, () => {})] }, proxy.url)
  const first = worker.status.workerId
  const delayMs = fast.lease * 1.3
  proxy.delay(delayMs)
  await until('it was lost', () => rig.lines.some(({ message }) => message.includes('the lease was lost')))
  const overAt = await rig.db.value('select expires_at from rowlock.worker where id = $1', [first])
  const lostAt = performance.now()
  proxy.delay(0)
  await until('it is back', () => worker.status.workerId !== null && worker.status.workerId !== first)
  await until('what was under way has come', () => performance.now() > lostAt + delayMs)
  await until('the lease is over at the server as well', () => rig.db.value('select $1 < now()', [overAt]))
  const later = 'select from rowlock.worker where id = $1 and expires_at > $2'
  expect(await rig.db.sql(later, [first, overAt])).toEqual([])
})

test('a link whose round trip takes three tenths of the lease costs neither the lease nor a second run', async () => {
  let runs = 0
  const handler = handle(job, async ({ input }) => {
    if (input === 0) return
    runs++
    await new Promise((resolve) => setTimeout(resolve, 8_500))
  })
  const worker = await rig.start({ lease: 8_000, handlers: [handler] }, proxy.url)
  const first = worker.status.workerId
  // To connect takes several round trips; that it costs no more than a connection is not asked here.
  await until('it has connections to claim and to finish', async () => {
    await rig.rowlock.enqueue(job, 0)
    return rig.db.value(`select count(*) > 1 from pg_stat_activity
      where datname = current_database() and application_name = 'rowlock worker'`)
  })
  await rig.idle()
  proxy.delay(1_200)
  try {
    const { id } = await rig.rowlock.enqueue(job, 1)
    expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1 })
    expect(runs).toBe(1)
    expect(worker.status.workerId).toBe(first)
  } finally {
    proxy.delay(0)
  }
})

describe('an answer that is lost', () => {
  test('of a claim: its jobs are found and given back while the worker lives on', async () => {
    const runs: string[] = []
    const handler = handle(job, ({ job: { id } }) => void runs.push(id))
    const worker = await rig.start({ handlers: [handler], lease: 30_000 }, proxy.url)
    const first = worker.status.workerId
    const cut = proxy.cutAnswer(/"claim"/)
    await cut
    const arm = proxy.cutAnswer(/"claim"/)
    const all = await rig.rowlock.enqueueMany([1, 2, 3].map((n) => job.with(n)))
    await arm
    for (const { id } of all) await rig.becomes(id, 'done')
    expect(worker.status.workerId).toBe(first)
    expect(runs.sort()).toEqual(all.map(({ id }) => id).sort())
  })

  test('of a completion: it is repeated, counts once, and is not called lost', async () => {
    const lost: unknown[] = []
    let runs = 0
    const worker = await rig.start({ handlers: [handle(job, () => ++runs)] }, proxy.url)
    worker.on('outcome_lost', (facts) => lost.push(facts))
    const cut = proxy.cutAnswer(/"finish"/)
    const { id } = await rig.rowlock.enqueue(job, 1)
    await cut
    await rig.becomes(id, 'done')
    await worker.stop()
    expect(runs).toBe(1)
    expect(lost).toEqual([])
    expect(proxy.statements.filter(({ text }) => text.includes('"finish"')).length).toBeGreaterThanOrEqual(2)
  })

  test('of a failure: the same', async () => {
    const lost: unknown[] = []
    const handler = handle(job, () => {
      throw new Error('no')
    })
    const worker = await rig.start({ handlers: [handler] }, proxy.url)
    worker.on('outcome_lost', (facts) => lost.push(facts))
    const cut = proxy.cutAnswer(/"finish"/)
    const { id } = await rig.rowlock.enqueue(job, 1, { retry: { maxAttempts: 1 } })
    await cut
    expect(await rig.becomes(id, 'dead_letter')).toMatchObject({ attempt: 1, failures: 1 })
    await worker.stop()
    expect(lost).toEqual([])
    expect((await rig.rowlock.job(id))?.attempts).toHaveLength(1)
  })

  test('of the registration: another identity is taken, and the first one is nobody', async () => {
    const cut = proxy.cutAnswer(/"register"/)
    const worker = await rig.start({ ...fast, handlers: [handle(job, () => {})] }, proxy.url)
    await cut
    const { id } = await rig.rowlock.enqueue(job, 1)
    await rig.becomes(id, 'done')
    await worker.stop()
    await until('the orphan is swept', async () => {
      const sweeper = await rig.db.value('select rowlock.reap(10)')
      return sweeper && (await rig.db.value('select count(*)::integer from rowlock.worker')) === 0
    })
  })
})

test('a job whose input cannot be read for a moment has not failed', async () => {
  const worker = await rig.start({ handlers: [handle(job, ({ input }) => input as never)] }, proxy.url)
  const cut = proxy.cutAnswer(/from "rowlock"\.payload/)
  const { id } = await rig.rowlock.enqueue(job, 'x'.repeat(10_000) as never)
  await cut
  expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, failures: 0, attempts: [] })
  await worker.stop()
})

test('a link that hangs while it connects is given up and made anew', async () => {
  await proxy.set('blackhole')
  const worker = rig.worker({ ...fast, handlers: [handle(job, () => {})] }, proxy.url)
  const started = worker.start()
  await started
  expect(worker.status.workerId).toBeNull()
  await proxy.set('pass')
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'done')
})

test('an outage says so once in a while, not at each try', async () => {
  await rig.start({ ...fast, handlers: [handle(job, () => {})] }, proxy.url)
  const since = performance.now()
  await proxy.set('refuse')
  proxy.reset()
  await until('the lease is lost', () =>
    rig.lines.some(({ message }) => message.includes('the lease was lost')),
  )
  await rig.db.sql('select pg_sleep(1)')
  const counts = new Map<string, number>()
  for (const { message } of rig.lines) counts.set(message, (counts.get(message) ?? 0) + 1)
  // Every ten seconds: once, unless the machine is so slow.
  expect(Math.max(...counts.values())).toBeLessThanOrEqual(
    1 + Math.floor((performance.now() - since) / 10_000),
  )
})
