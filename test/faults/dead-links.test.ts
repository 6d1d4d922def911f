// Links that die without a word to one side: what the server holds for a client that is gone, and what a worker that is
// ending still has to say.

import { createRowlock, defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from '../worker/child-jobs.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('dead links')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
  await rig.db.sql('create table business (job_id bigint)')
  proxy = await startProxy(rig.db.url)
})
afterEach(async () => {
  await killChildren()
  await proxy.calm()
  proxy.reset()
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job', { retry: { backoff: fixed(0) } })

test('the server ends by itself the transaction of a handler whose process and link are gone', async () => {
  const worker = startChild('worker/child.ts', {
    url: proxy.url,
    ledger: rig.db.url,
    options: { lease: 60_000 },
  })
  await worker.until('it is ready', ({ ready }) => ready)
  const timeout = { timeout: 8_000, retry: { backoff: fixed(0) } }
  const { id } = await rig.rowlock.enqueue(jobs.write, 600_000, timeout)
  await worker.until('it has written', ({ wrote }) => wrote === id)
  // The server hears of no end: neither of the process nor of its sockets.
  await proxy.set('blackhole')
  worker.signal('SIGKILL')
  await worker.ended()
  const held = `select from pg_locks where relation = 'business'::regclass and granted`
  expect(await rig.db.sql(held)).toHaveLength(1)
  await until('nothing is held any more', async () => (await rig.db.sql(held)).length === 0)
  await rig.db.sql('alter table business add column if not exists more integer')
  expect(await rig.db.value('select count(*)::integer from business')).toBe(0)
})

test('half a statement that never ends holds no lock, and is OUTCOME_UNKNOWN to whoever sent it', async () => {
  const rowlock = createRowlock({ connectionString: proxy.url, statementTimeoutMs: 5_000, maxConnections: 1 })
  await rowlock.enqueue(job, 1)
  const torn = proxy.cutMessage('server', { silently: true })
  const lost = rowlock.enqueue(job, 2, { dedupeKey: 'k' }).then(
    () => 'no error',
    (error) => error.code,
  )
  await torn
  const holds = `select from pg_locks l join pg_stat_activity a using (pid)
    where a.datname = current_database() and a.application_name = 'rowlock' and l.locktype = 'relation'`
  expect(await rig.db.sql(holds)).toEqual([])
  expect(await lost).toBe('OUTCOME_UNKNOWN')
  await proxy.calm()
  expect(await rowlock.enqueue(job, 2, { dedupeKey: 'k' })).toMatchObject({ created: true })
  await rowlock.close()
})

test.each(['refuse', 'blackhole'] as const)(
  'what ends during a stop while the link is down (%s) is written when it is back within the lease',
  async (mode) => {
    let end: () => void = () => {}
    let runs = 0
    const handler = handle(job, () => {
      runs++
      return new Promise<void>((resolve) => {
        end = resolve
      })
    })
    const worker = await rig.start({ handlers: [handler], lease: 30_000, heartbeat: 300 }, proxy.url)
    const { id } = await rig.rowlock.enqueue(job, 1)
    await until('it runs', () => runs === 1)
    const stopped = worker.stop({ grace: 20_000 })
    await proxy.set(mode)
    if (mode === 'refuse') proxy.reset()
    end()
    await rig.db.sql('select pg_sleep(1.5)')
    expect((await rig.rowlock.job(id))!.state).toBe('running')
    if (mode === 'blackhole') proxy.reset()
    await proxy.set('pass')
    await stopped
    expect(await rig.rowlock.job(id)).toMatchObject({ state: 'done', attempt: 1, attempts: [] })
    expect(runs).toBe(1)
    await until('no session is left', () => proxy.open === 0)
  },
)

test('a stop whose link stays down ends all the same, and the job is left to its lease', async () => {
  let end: () => void = () => {}
  let isDown = false
  let runs = 0
  const handler = handle(job, () => {
    runs++
    if (isDown) return
    return new Promise<void>((resolve) => {
      end = resolve
    })
  })
  const worker = await rig.start({ handlers: [handler], lease: 4_000 }, proxy.url)
  const { id } = await rig.rowlock.enqueue(job, 1)
  await until('it runs', () => runs > 0)
  isDown = true
  const before = runs
  const stopped = worker.stop({ grace: 20_000 })
  await proxy.set('refuse')
  proxy.reset()
  end()
  await stopped
  expect(worker.status.state).toBe('stopped')
  expect(runs).toBe(before)
  await rig.start({ handlers: [handler] })
  await rig.becomes(id, 'done')
  expect(runs).toBe(before + 1)
})
