// Heartbeats that take long: one that arrives when the job has another owner takes nothing back; on a slow link they
// leave a margin, which is measured: ROWLOCK_LONG=1, also while other threads take all of the processors.

import { Worker as Thread } from 'node:worker_threads'
import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { IS_LONG } from '../support/long.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('late beats')
  proxy = await startProxy(rig.db.url)
  await rig.db.sql(`
    create table beat (worker_id uuid, at timestamptz default clock_timestamp());
    create function note_beat() returns trigger language plpgsql as
      $$ begin insert into public.beat (worker_id) values (new.id); return null; end $$;
    create trigger beat after insert or update on rowlock.worker for each row execute function note_beat()`)
})
afterEach(async () => {
  await proxy.calm()
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job', { retry: { backoff: fixed(0) } })
const quick = defineJob<null>('quick')

test.runIf(IS_LONG).each(['at rest', 'busy'])(
  'a link whose round trip takes four tenths of the lease leaves beats a margin, on a machine that is %s',
  { timeout: 300_000 },
  async (how) => {
    const lease = 10_000
    const threads = Array.from(
      { length: how === 'busy' ? 2 : 0 },
      () => new Thread('for (;;);', { eval: true }),
    )
    try {
      let starts = 0
      const handler = handle(job, async () => {
        starts++
        await new Promise((resolve) => setTimeout(resolve, 3 * lease))
      })
      const worker = await rig.start(
        { lease, handlers: [handler, handle(quick, () => {})], queues: { default: { concurrency: 2 } } },
        proxy.url,
      )
      const first = worker.status.workerId
      // Its connections are there: to make one takes several round trips, and has a time of its own.
      const { id: before } = await rig.rowlock.enqueue(quick, null)
      await rig.becomes(before, 'done')
      proxy.delay(lease * 0.2)
      const all = await rig.rowlock.enqueueMany([job.with(1), job.with(2)])
      await until('both run', () => starts === 2)
      // Somebody else is idle, and would have them.
      await rig.start({ lease, handlers: [handler] })
      for (const { id } of all)
        expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, attempts: [] })
      expect(starts).toBe(2)
      expect(worker.status.workerId).toBe(first)
      const [{ gap }] = await rig.db.sql(
        `select max(extract(epoch from gap) * 1000)::integer as gap
           from (select at - lag(at) over (order by at) as gap from beat where worker_id = $1) as gaps`,
        [first],
      )
      console.log(`${how}: the longest of all pauses between beats ${gap} ms, of a lease of ${lease} ms`)
      expect(gap).toBeLessThan(lease)
    } finally {
      await Promise.all(threads.map((thread) => thread.terminate()))
    }
  },
)

test('a beat that arrives when its job has another owner takes nothing back', async () => {
  const reasons: unknown[] = []
  const ends: (() => void)[] = []
  const handler = (isFirst: boolean) =>
    handle(job, ({ signal }) => {
      if (!isFirst) return new Promise<void>((resolve) => void ends.push(resolve))
      return new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push((signal.reason as { code: string }).code)
          reject(signal.reason)
        })
      })
    })
  const worker = await rig.start({ lease: 1_000, handlers: [handler(true)] }, proxy.url)
  const first = worker.status.workerId
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'running')
  await until('it runs', () => worker.status.running === 1)
  const beats = () => proxy.statements.filter(({ session }) => session === 'rowlock heartbeat').length
  const before = beats()
  proxy.hold('rowlock heartbeat')
  await until('a beat is on its way', () => beats() > before)
  await until('it is told', () => reasons.length > 0)
  expect(reasons).toEqual(['lease_lost'])
  await rig.start({ lease: 60_000, handlers: [handler(false)] })
  await until('another has it', () => ends.length === 1)
  const look = async () => ({
    job: await rig.db.sql('select claim_id, worker_id, attempt from rowlock.running where id = $1', [id]),
    leases: await rig.db.sql(
      'select id, expires_at from rowlock.worker where expires_at < now() order by id',
    ),
  })
  const seen = await look()
  expect(seen.job[0]).toMatchObject({ attempt: 2 })
  proxy.hold(undefined)
  await until('the first is back under another name', () => ![null, first].includes(worker.status.workerId))
  const after = await look()
  expect(after.job).toEqual(seen.job)
  expect(after.leases.map(({ id: one }) => one)).not.toContain(worker.status.workerId)
  expect(
    await rig.db.sql('select from rowlock.worker where id = $1 and expires_at > now()', [first]),
  ).toEqual([])
  ends[0]!()
  expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 2, attempts: [{ outcome: 'lost' }] })
})

test('a beat that arrives when its lease is over and nobody has noticed yet brings nothing back', async () => {
  await rig.holdOffReapers()
  const worker = await rig.start({ lease: 1_000, handlers: [handle(quick, () => {})] }, proxy.url)
  const first = worker.status.workerId
  const beats = () => proxy.statements.filter(({ session }) => session === 'rowlock heartbeat').length
  const before = beats()
  proxy.hold('rowlock heartbeat')
  await until('a beat is on its way', () => beats() > before)
  const ended = () =>
    rig.db.sql('select expires_at from rowlock.worker where id = $1 and expires_at < now()', [first])
  await until('its lease is over', async () => (await ended()).length === 1)
  const seen = await ended()
  const arrived = () => rig.db.value<number>('select count(*)::integer from beat')
  const count = await arrived()
  proxy.hold(undefined)
  await until('it is back under another name', () => ![null, first].includes(worker.status.workerId))
  // The new name has beaten: what was on its way before has arrived as well.
  await until('it has beaten', async () => (await arrived()) > count + 1)
  expect(await ended()).toEqual(seen)
})
