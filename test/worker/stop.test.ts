// How a worker ends: it drains, aborts, hands back, and leaves nothing behind, whatever state it is in.

import { createRowlock, defineJob, handle, isAborted, isRowlockError } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from './child-jobs.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('stop')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
  proxy = await startProxy(rig.db.url)
})
afterEach(async () => {
  await killChildren()
  await proxy.set('pass')
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job')
const sessions = () =>
  rig.db.value<number>(`select count(*)::integer from pg_stat_activity
    where datname = current_database() and application_name in
      ('rowlock worker', 'rowlock heartbeat', 'rowlock listen', 'rowlock handlers')`)

/** A stop waits no longer than a second for the answer to its goodbye. No reaper helps: nobody works here by then. */
const rowsAreGone = () =>
  until(
    'no worker is on record',
    async () => (await rig.db.value('select count(*)::integer from rowlock.worker')) === 0,
  )

/** A handler that ends when it is told, or when it is aborted if it listens. */
function gated(listens: boolean) {
  const open: (() => void)[] = []
  const reasons: unknown[] = []
  const handler = handle(
    job,
    ({ signal }) =>
      new Promise<void>((resolve, reject) => {
        open.push(resolve)
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          if (listens) reject(signal.reason)
        })
      }),
  )
  return { handler, open, reasons }
}

describe('draining', () => {
  test('what runs may end, what is prefetched goes back as it was, and nothing new is claimed', async () => {
    const { handler, open } = gated(true)
    const worker = await rig.start({
      handlers: [handler],
      queues: { default: { concurrency: 1, prefetch: 2 } },
    })
    const all = await rig.rowlock.enqueueMany([1, 2, 3, 4].map((n) => job.with(n)))
    await until('one runs and two are prefetched', () => open.length === 1 && worker.status.prefetched === 2)
    const before = (await rig.rowlock.job(all[1]!.id))!.availableAt
    const stopped = worker.stop({ grace: 60_000 })
    expect(worker.status.state).toBe('draining')
    await until(
      'the others are handed back',
      async () => (await rig.rowlock.job(all[2]!.id))?.state === 'queued',
    )
    open[0]!()
    await stopped
    expect(open).toHaveLength(1)
    expect((await rig.rowlock.job(all[0]!.id))?.state).toBe('done')
    for (const { id } of all.slice(1, 3)) {
      expect(await rig.rowlock.job(id)).toMatchObject({
        state: 'queued',
        failures: 0,
        attempt: 1,
        attempts: [{ outcome: 'handed_back', startedAt: null, cause: null }],
      })
    }
    expect((await rig.rowlock.job(all[1]!.id))!.availableAt).toEqual(before)
    expect(await rig.rowlock.job(all[3]!.id)).toMatchObject({ state: 'queued', attempt: 0, attempts: [] })
    await rowsAreGone()
  })

  test('after the grace a handler is aborted and its job handed back, without a failure', async () => {
    const { handler, reasons, open } = gated(true)
    const worker = await rig.start({ handlers: [handler] })
    const { id } = await rig.rowlock.enqueue(job, 1)
    await until('it runs', () => open.length === 1)
    await worker.stop({ grace: 50 })
    expect(reasons.map((reason) => isAborted(reason, 'shutdown'))).toEqual([true])
    expect(await rig.rowlock.job(id)).toMatchObject({
      state: 'queued',
      failures: 0,
      attempts: [{ outcome: 'handed_back', cause: 'shutdown' }],
    })
  })

  test('a handler that ends well all the same is done', async () => {
    let begun = false
    const handler = handle(
      job,
      ({ signal }) =>
        new Promise<void>((resolve) => {
          begun = true
          signal.addEventListener('abort', () => resolve())
        }),
    )
    const worker = await rig.start({ handlers: [handler] })
    const { id } = await rig.rowlock.enqueue(job, 1)
    await until('it runs', () => begun)
    await worker.stop({ grace: 0 })
    expect((await rig.rowlock.job(id))?.state).toBe('done')
  })

  test('jobs of deaf handlers go back once, however many there are, and the worker stays fit', async () => {
    const { handler, open } = gated(false)
    const fit: unknown[] = []
    const code = process.exitCode
    const worker = await rig.start({ handlers: [handler], stuckSlots: 2 })
    worker.on('stopped', (facts) => fit.push(facts))
    const all = await rig.rowlock.enqueueMany([1, 2, 3, 4].map((n) => job.with(n)))
    await until('they run', () => open.length === 4)
    await worker.stop({ grace: 0 })
    for (const { id } of all) {
      expect(await rig.rowlock.job(id)).toMatchObject({
        state: 'queued',
        failures: 0,
        attempts: [{ cause: 'shutdown' }],
      })
    }
    expect(fit).toEqual([{ fit: true }])
    expect(process.exitCode).toBe(code)
    // Whatever they answer now is nobody's business.
    for (const end of open) end()
    expect(await rig.db.value(`select count(*)::integer from rowlock.attempt`)).toBe(4)
  })

  test('a second stop hurries the first', async () => {
    const { handler, reasons, open } = gated(true)
    const worker = await rig.start({ handlers: [handler] })
    await rig.rowlock.enqueue(job, 1)
    await until('it runs', () => open.length === 1)
    const first = worker.stop({ grace: 3_600_000 })
    expect(reasons).toEqual([])
    await Promise.all([first, worker.stop()])
    expect(reasons).toHaveLength(1)
  })
})

describe('a stop', () => {
  test.each([{ grace: Number.NaN }, { grace: -1 }, { grace: 'soon' }, { graceMs: 5 }, null, 5])(
    'with %j is refused, and nothing has happened',
    async (options) => {
      const worker = await rig.start({ handlers: [handle(job, () => {})] })
      await expect(worker.stop(options as any)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      const { id } = await rig.rowlock.enqueue(job, 1)
      await rig.becomes(id, 'done')
    },
  )

  test('takes a length as text', async () => {
    const { handler, reasons, open } = gated(true)
    const worker = await rig.start({ handlers: [handler], grace: '1h' })
    await rig.rowlock.enqueue(job, 1)
    await until('it runs', () => open.length === 1)
    await worker.stop({ grace: '50ms' })
    expect(reasons).toHaveLength(1)
  })
})

describe('afterwards', () => {
  test('a start is refused', async () => {
    const worker = await rig.start({ handlers: [handle(job, () => {})] })
    await worker.stop()
    await expect(worker.start()).rejects.toSatisfy((error) => isRowlockError(error, 'CLOSED'))
    await worker.stop()
    expect(worker.status.state).toBe('stopped')
  })

  test('no byte is sent and no session is left', async () => {
    const worker = await rig.start({ handlers: [handle(job, () => {})], listen: true }, proxy.url)
    await rig.rowlock.enqueueMany(Array.from({ length: 50 }, (_, n) => job.with(n)))
    await until(
      'some are done',
      async () => (await rig.db.value('select count(*)::integer from rowlock.finished')) > 0,
    )
    await worker.stop()
    // They are closed when the stop resolves; the other side hears of it a moment later.
    await until('its sockets are closed', () => proxy.open === 0)
    const { sentBytes } = proxy
    await until('the server has seen them go', async () => (await sessions()) === 0)
    await rig.db.sql('select pg_sleep(0.3)')
    expect(proxy.sentBytes).toBe(sentBytes)
  })
})

describe('signals', () => {
  test('are taken only when asked for, and given back', async () => {
    const count = () => process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')
    const before = count()
    const without = await rig.start({ handlers: [handle(job, () => {})] })
    expect(count()).toBe(before)
    await without.stop()
    const worker = await rig.start({ handlers: [handle(job, () => {})], signals: true })
    expect(count()).toBe(before + 2)
    await worker.stop()
    expect(count()).toBe(before)
  })

  test('the first drains, the second aborts, and the process ends by itself', async () => {
    const child = startChild('worker/child.ts', {
      url: rig.db.url,
      ledger: rig.db.url,
      options: { signals: true, abortGrace: 200 },
    })
    await child.until('it is ready', ({ ready }) => ready)
    const { id } = await rig.rowlock.enqueue(jobs.deaf, 0)
    await child.until('it runs', ({ deaf }) => deaf === id)
    child.signal('SIGTERM')
    await until('it drains', async () =>
      rig.db.value(`select (facts ->> 'draining')::boolean from rowlock.worker`),
    )
    expect((await rig.rowlock.job(id))?.state).toBe('running')
    child.signal('SIGINT')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect((await rig.rowlock.job(id))?.state).toBe('queued')
  })
})

describe('a process that deaf handlers would keep alive', () => {
  const hanging = async (options: object) => {
    const child = startChild('worker/child.ts', {
      url: rig.db.url,
      ledger: rig.db.url,
      options: { signals: true, abortGrace: 100, grace: 100, ...options },
    })
    await child.until('it is ready', ({ ready }) => ready)
    const jobsOfIt = await rig.rowlock.enqueueMany([jobs.hang.with(0), jobs.hang.with(0)])
    for (const { id } of jobsOfIt) await child.until('it hangs', (said) => said.hanging === id)
    return child
  }

  test('ends at the signal that it takes', async () => {
    const child = await hanging({ stuckSlots: 100 })
    child.signal('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.said).toContainEqual({ event: 'stopped', fit: true })
  })

  test('ends with code 1 when it is unfit', async () => {
    const child = await hanging({ stuckSlots: 2 })
    expect(await child.ended()).toEqual({ code: 1, signal: null })
    expect(child.said).toContainEqual({ event: 'stopped', fit: false })
  })
})

describe('in whatever state it is', () => {
  const idle = { handlers: [handle(job, () => {})], lease: 1_000, listen: true } as const

  test('never started', async () => {
    const worker = rig.worker(idle)
    await worker.stop()
    expect(worker.status.state).toBe('stopped')
  })

  test('while it starts', async () => {
    const worker = rig.worker(idle)
    const started = worker.start()
    await worker.stop()
    await started
    expect(worker.status.state).toBe('stopped')
    await until('its sessions are gone', async () => (await sessions()) === 0)
    await rowsAreGone()
  })

  test('while it connects to a black hole', async () => {
    await proxy.set('blackhole')
    const worker = rig.worker({ ...idle, lease: '1m' }, proxy.url)
    const started = worker.start()
    await until('it connects', () => proxy.open > 0)
    await worker.stop()
    expect(worker.status.state).toBe('stopped')
    // They are cut before the stop resolves; by itself a connection is given up after ten seconds.
    await until('its sockets are closed', () => proxy.open === 0, { withinMs: 9_000 })
    await started
  })

  test.each(['refuse', 'blackhole'] as const)(
    'while the server is away (%s), with a job at work',
    async (mode) => {
      const { handler, open, reasons } = gated(false)
      const worker = await rig.start({ ...idle, handlers: [handler] }, proxy.url)
      await rig.rowlock.enqueue(job, 1)
      await until('it runs', () => open.length === 1)
      await proxy.set(mode)
      if (mode === 'refuse') proxy.reset()
      await until('it has noticed', () => reasons.length === 1)
      await worker.stop({ grace: 100 })
      expect(worker.status.state).toBe('stopped')
      await until('its sockets are closed', () => proxy.open === 0)
      open[0]!()
    },
  )

  test.each(['pass', 'refuse', 'blackhole'] as const)('a process ends by itself (%s)', async (mode) => {
    const child = startChild('worker/child.ts', {
      url: proxy.url,
      ledger: rig.db.url,
      options: { lease: 1_000, listen: true, abortGrace: 100 },
    })
    await child.until('it is ready', ({ ready }) => ready)
    const { id } = await rig.rowlock.enqueue(jobs.deaf, 0)
    await child.until('it runs', ({ deaf }) => deaf === id)
    await proxy.set(mode)
    if (mode === 'refuse') proxy.reset()
    child.send({ stop: { grace: 0 } })
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.said.filter(({ fault, warning }) => fault || warning)).toEqual([])
  })
})

test('a hundred workers that start and stop leave no listener, session or row behind', async () => {
  const warnings: unknown[] = []
  const listener = (warning: unknown) => void warnings.push(warning)
  process.on('warning', listener)
  const client = createRowlock({ connectionString: rig.db.url })
  const count = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  const before = count()
  for (let n = 0; n < 100; n++) {
    const worker = client.worker({ handlers: [handle(job, () => {})], signals: true, logger: rig.logger })
    const started = worker.start()
    if (n % 2 === 0) await started
    await worker.stop()
    await started
  }
  expect(count()).toBe(before)
  process.off('warning', listener)
  expect(warnings).toEqual([])
  await until('all sessions are gone', async () => (await sessions()) === 0)
  await rowsAreGone()
  await client.close()
})
