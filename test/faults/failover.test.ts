// Failover: a primary is killed under load and its standby promoted; connections that lead to the wrong server; a
// server that takes no writes for a while; what an asynchronous standby had not received.
//
// ROWLOCK_LONG=1: all ways to fail over. Otherwise one.

import { createRowlock, defineJob, fixed, handle, type Rowlock } from 'rowlock'
import { afterEach, describe, expect, test } from 'vitest'
import { type FailoverResult, runFailover } from '../../faults/failover.ts'
import { type Pair, startPair } from '../../faults/pair.ts'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { Database } from '../../src/engine/database.ts'
import { seedOf } from '../engine/by-hand.ts'
import { codeOf } from '../support/ground.ts'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'
const LONG = { timeout: 400_000 }

function tell(
  name: string,
  { history, enqueuedAfterMs, doneAfterMs, drainedMs, tail }: FailoverResult,
): void {
  const answers = (answer: string) => history.calls.filter((call) => call.answer === answer).length
  const lost = tail.filter(({ figure }) => figure === 'lost').length
  console.log(
    `${name}: ${answers('ok')} acknowledged, ${answers('unknown')} unknown, ${lost} lost with the tail; enqueued ` +
      `again after ${enqueuedAfterMs} ms, done again after ${doneAfterMs} ms, drained within ${drainedMs} ms`,
  )
}

describe('under load', () => {
  const load = { programs: programs(), loadMs: IS_LONG ? 4_000 : 1_500, boundMs: 60_000 }

  test(
    'F01: a synchronous standby with both hosts in the address: nothing is lost, no job has two owners',
    LONG,
    async () => {
      const result = await runFailover({
        ...load,
        isSynchronous: true,
        follow: 'hosts',
        seed: seedOf('failover'),
      })
      tell('synchronous, hosts', result)
      expect(result.violations).toEqual([])
      expect(result.history.jobs.length).toBeGreaterThan(50)
      // Workers go on: none was started anew.
      expect(result.survivors).toBe(2)
      expect(Math.max(result.enqueuedAfterMs, result.doneAfterMs)).toBeLessThan(60_000)
    },
  )

  test.runIf(IS_LONG).each([
    { follow: 'address', isSilent: true },
    { follow: 'address', killsHalf: true },
    { follow: 'hosts', killsHalf: true },
  ] as const)('F01: a synchronous standby, also like this: %j', LONG, async (how) => {
    const result = await runFailover({ ...load, ...how, isSynchronous: true, seed: seedOf('failover') })
    tell(JSON.stringify(how), result)
    expect(result.violations).toEqual([])
    expect(result.survivors).toBe('killsHalf' in how ? 1 : 2)
  })

  test
    .runIf(IS_LONG)
    .each([
      { follow: 'hosts', killsHalf: true },
      { follow: 'address', isSilent: true, killsHalf: true },
      { follow: 'hosts' },
    ] as const)('F04: an asynchronous standby loses the tail and nothing else: %j', LONG, async (how) => {
    const seed = seedOf('failover')
    const result = await runFailover({ ...load, ...how, isSynchronous: false, behindMs: 1_000, seed })
    tell(`asynchronous, ${JSON.stringify(how)}`, result)
    expect(result.violations).toEqual([])
    // The judge sees what was lost: it would have seen it where nothing may be.
    expect(result.tail.map(({ figure }) => figure)).toContain('lost')
  })
})

describe('step by step', () => {
  const job = defineJob<string>('job', { retry: { backoff: fixed(0) } })
  let pair: Pair
  let proxy: PostgresProxy
  const open: { close(): Promise<unknown> }[] = []
  const lines: string[] = []
  const logger = {
    debug() {},
    info() {},
    warn: (_: object, message: string) => void lines.push(message),
    error() {},
  }
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
    lines.length = 0
  })

  async function begin(): Promise<Rowlock> {
    pair = await startPair({ programs: programs(), isSynchronous: false })
    open.push({ close: () => pair.stop() })
    proxy = await startProxy(pair.primary.url)
    open.push(proxy)
    const rowlock = createRowlock({ connectionString: proxy.url })
    open.push(rowlock)
    await rowlock.migrate()
    return rowlock
  }

  /** A worker whose handlers wait until they are let go; `runs` has the key of each call. */
  async function work(
    rowlock: Rowlock,
    options: { readonly lease: number; readonly pollListening?: number },
  ) {
    const runs: { readonly input: string; readonly key: string; readonly end: () => void }[] = []
    const worker = rowlock.worker({
      handlers: [
        handle(
          job,
          ({ input, idempotencyKey: key }) => new Promise<void>((end) => void runs.push({ input, key, end })),
        ),
      ],
      queues: { default: { concurrency: 4, prefetch: 0 } },
      poll: 100,
      pollListening: 100,
      maintenance: 200,
      abortGrace: 100,
      logger,
      ...options,
    })
    open.push({ close: () => worker.stop({ grace: 0 }) })
    await worker.start()
    return { worker, runs }
  }

  async function failOver(): Promise<void> {
    await pair.killPrimary()
    await pair.promote()
    proxy.lead(pair.standby.url)
    proxy.reset()
  }

  const state = async (rowlock: Rowlock, id: string) => (await rowlock.job(id))?.state
  const setReadOnly = async (on: boolean) => {
    const how = on ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only'
    await pair.ask(pair.primary, `alter system ${how}`)
    await pair.ask(pair.primary, 'select pg_reload_conf()')
    await until(
      'it is set',
      async () =>
        (await pair.ask(pair.primary, 'show default_transaction_read_only'))[0]!
          .default_transaction_read_only === (on ? 'on' : 'off'),
    )
  }

  test(
    'F03: an outcome that could not be written for a while is written later, within the lease and after it',
    LONG,
    async () => {
      const rowlock = await begin()
      const { runs, worker } = await work(rowlock, { lease: 60_000 })
      const first = await rowlock.enqueue(job, 'first')
      await until('it runs', () => runs.length === 1)
      const identity = worker.status.workerId
      await setReadOnly(true)
      runs[0]!.end()
      await until('it could not be written', () => lines.includes('outcomes could not be written yet'))
      expect(await state(rowlock, first.id)).toBe('running')
      await setReadOnly(false)
      await until('it is written', async () => (await state(rowlock, first.id)) === 'done')
      expect(await rowlock.job(first.id)).toMatchObject({ attempt: 1 })
      expect(worker.status.workerId).toBe(identity)
      await worker.stop()

      const { runs: again, worker: brief } = await work(rowlock, { lease: 3_000 })
      const second = await rowlock.enqueue(job, 'second')
      await until('it runs', () => again.length === 1)
      await setReadOnly(true)
      again[0]!.end()
      await until('the lease is over', () => brief.status.workerId === null)
      await setReadOnly(false)
      // Whoever is first: the outcome that is still tried, or who gives the job back.
      await until('it is done', async () => {
        for (const { end } of again) end()
        return (await state(rowlock, second.id)) === 'done'
      })
      expect(await rowlock.job(second.id)).toMatchObject({ attempt: again.length })
      expect(new Set(again.map(({ key }) => key)).size).toBe(1)
    },
  )

  test(
    'F02: a connection to a standby is destroyed, not given back; D02: a listener tries until it is promoted',
    LONG,
    async () => {
      const rowlock = await begin()
      const { runs, worker } = await work(rowlock, { lease: 5_000 })
      await until('it listens', () => worker.status.listening)
      const mixed = new Database({ connectionString: proxy.url, maxConnections: 4, applicationName: 'mixed' })
      open.push(mixed)
      const enqueue = () => mixed.query('select rowlock.enqueue($1, $2::jsonb)', ['job', '"x"'])
      const there = async () =>
        (await pair.ask(pair.standby, `select pid from pg_stat_activity where application_name = 'mixed'`))
          .length
      const right = [await mixed.connect(), await mixed.connect()]
      await pair.caughtUp() // a standby without the schema would say that
      proxy.lead(pair.standby.url)
      const wrong = [await mixed.connect(), await mixed.connect()]
      for (const client of [...right, ...wrong]) client.release()
      expect(await there()).toBe(2)
      // The two that lead to the standby are met first, and once.
      expect(await codeOf(enqueue())).toBe('DATABASE_UNAVAILABLE')
      expect(await codeOf(enqueue())).toBe('DATABASE_UNAVAILABLE')
      for (let n = 0; n < 4; n++) expect(await codeOf(enqueue())).toBe('no error')
      await until('none is left', async () => (await there()) === 0)

      // Now all connections lead to the standby, and nobody restarts anything.
      await pair.caughtUp()
      proxy.reset()
      await until('the listener is refused', () => lines.includes('listening failed: polling instead'))
      await until('its lease is over', () => worker.status.workerId === null)
      expect(await codeOf(enqueue())).toBe('DATABASE_UNAVAILABLE')
      await pair.killPrimary()
      await pair.promote()
      await until('jobs are taken', async () => (await codeOf(enqueue())) === 'no error')
      await until('they run', () => runs.length > 0)
      await until('it listens again', () => worker.status.listening)
    },
  )

  test(
    'F04: ids, leases and claims go back in time: what was lost is free, what was kept is kept, what ran runs again',
    LONG,
    async () => {
      const rowlock = await begin()
      const { runs } = await work(rowlock, { lease: 60_000 })
      const kept = await rowlock.enqueue(job, 'kept', { dedupeKey: 'kept', delay: '1h' })
      await pair.caughtUp()
      await pair.stream.set('blackhole')
      await rowlock.runNow(kept.id)
      await rowlock.enqueue(job, 'gone', { dedupeKey: 'gone' })
      const brief = await rowlock.enqueue(job, 'brief')
      await until('they run', () => runs.length === 3)
      runs.find(({ input }) => input === 'brief')!.end()
      await until('one is done', async () => (await state(rowlock, brief.id)) === 'done')
      await failOver()

      await until(
        'the worker has a lease',
        async () => (await codeOf(rowlock.runNow(kept.id))) === 'no error',
      )
      await until('what was kept runs again', () => runs.filter(({ input }) => input === 'kept').length === 2)
      const keys = runs.filter(({ input }) => input === 'kept').map(({ key }) => key)
      expect(keys[1]).toBe(keys[0])
      expect(await rowlock.enqueue(job, 'kept', { dedupeKey: 'kept' })).toEqual({
        id: kept.id,
        created: false,
      })
      expect(await rowlock.enqueue(job, 'gone again', { dedupeKey: 'gone' })).toMatchObject({ created: true })
      await until('it runs', () => runs.some(({ input }) => input === 'gone again'))
      // The old call's outcome names a claim that never was: it is refused, and the new one's is taken.
      runs.find(({ input }) => input === 'kept')!.end()
      await until('it came too late', () =>
        lines.includes('an outcome came too late: the job had another owner'),
      )
      expect(await state(rowlock, kept.id)).toBe('running')
      for (const { end } of runs) end()
      await until('it is done', async () => (await state(rowlock, kept.id)) === 'done')
      expect(await rowlock.job(kept.id)).toMatchObject({ attempt: 1 })
      await until('nothing is left', async () => {
        const [row] = await pair.ask(
          pair.standby,
          'select (select count(*) from rowlock.waiting) + (select count(*) from rowlock.running) as live, ' +
            '(select count(*) from rowlock.dedupe) as keys',
        )
        return row!.live === '0' && row!.keys === '0'
      })
    },
  )

  test.runIf(IS_LONG)(
    'F05: a listener whose connection leads to nowhere finds out by itself',
    LONG,
    async () => {
      const rowlock = await begin()
      const { runs, worker } = await work(rowlock, { lease: 5_000, pollListening: 60_000 })
      await until('it listens', () => worker.status.listening)
      await pair.caughtUp()
      proxy.strand()
      await pair.killPrimary()
      await pair.promote()
      proxy.lead(pair.standby.url)
      const began = performance.now()
      const other = createRowlock({ connectionString: pair.standby.url })
      open.push(other)
      await until('it knows that it is deaf', () => !worker.status.listening)
      await until('it listens', () => worker.status.listening)
      console.log(`it listens again after ${Math.round(performance.now() - began)} ms`)
      await other.enqueue(job, 'heard')
      await until('it is woken', () => runs.some(({ input }) => input === 'heard'))
    },
  )
})
