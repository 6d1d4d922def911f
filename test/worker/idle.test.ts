// What a worker with nothing to do asks of the server, counted.

import { defineJob, handle, type Worker } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('idle')
  // Each look says what it asked for.
  await rig.db.sql(`
    create table looks (queues integer not null);
    alter function rowlock.claim(uuid, jsonb, timestamptz) rename to claim_itself;
    create function rowlock.claim(p_worker_id uuid, p_wants jsonb, p_sleeping_until timestamptz default null)
    returns json language plpgsql as $$
    begin
      insert into public.looks values (jsonb_array_length(p_wants));
      return rowlock.claim_itself(p_worker_id, p_wants, p_sleeping_until);
    end $$`)
  proxy = await startProxy(rig.db.url)
})
afterEach(() => rig.rest())
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<null>('job')

/** Queues by their names, with nothing set. */
const served = (queues: number) => Object.fromEntries(Array.from({ length: queues }, (_, n) => [`q${n}`, {}]))
const looks = () => rig.db.value<number>('select count(*)::integer from looks')
/** The first beat comes with the lease, whenever that is; none of those that follow does in these tests. */
const hasTold = (mark: number) =>
  proxy.statements.slice(mark).some(({ text }) => text.includes('"heartbeat"'))
/** Nothing but looks: no heartbeat, no upkeep, and no sweep comes in between. */
const quiet = { handlers: [handle(job, () => {})], lease: '1h', heartbeat: '20m', maintenance: '1h' } as const

/** What is asked during ten more looks, but for the end of the worker. */
async function tenLooks(worker: Worker): Promise<string[]> {
  const mark = proxy.statements.length
  const from = await looks()
  await until('it has looked ten times more', async () => (await looks()) >= from + 10)
  await worker.stop()
  const asked = proxy.statements.slice(mark).map(({ text }) => /"(\w+)"\(/.exec(text)?.[1] ?? text)
  return asked.filter((verb) => verb !== 'retire')
}

afterEach(() => rig.db.sql('truncate looks'))

test.each([1, 10, 50])(
  'an idle worker of %i queues asks one statement a poll: a look at all of them',
  async (queues) => {
    const mark = proxy.statements.length
    const worker = await rig.start({ ...quiet, queues: served(queues), poll: 50, listen: false }, proxy.url)
    await until('it has looked a few times', async () => (await looks()) >= 3)
    await until('it has told of itself', () => hasTold(mark))
    expect([...new Set(await tenLooks(worker))]).toEqual(['claim'])
    expect(await rig.db.sql('select distinct queues from looks')).toEqual([{ queues }])
  },
)

test('an idle worker that listens asks no more', async () => {
  const mark = proxy.statements.length
  const worker = await rig.start({ ...quiet, queues: served(10), pollListening: 50, listen: true }, proxy.url)
  await until('it sleeps', () => proxy.statements.some(({ text }) => text.includes('"sleep"')))
  await until('it has told of itself', () => hasTold(mark))
  const from = await looks()
  await until('its flags are sure to be seen', async () => (await looks()) >= from + 20)
  expect([...new Set(await tenLooks(worker))]).toEqual(['claim'])
})

test('a look for lost claims is no look for work', async () => {
  const mark = proxy.statements.length
  const worker = await rig.start(
    { ...quiet, queues: served(1), poll: '5m', listen: false, lease: 1_000, heartbeat: 300 },
    proxy.url,
  )
  const since = (verb: RegExp) => proxy.statements.slice(mark).filter(({ text }) => verb.test(text)).length
  await until('it has looked for lost claims a few times', () => since(/"claimId"/) >= 4)
  // A busy machine can lose so short a lease: each identity begins with a look.
  expect(since(/"claim"\(/)).toBeLessThanOrEqual(2 * since(/"register"\(/))
  await worker.stop()
})
