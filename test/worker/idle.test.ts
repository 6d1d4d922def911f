// What a worker with nothing to do asks of the server, counted.

import { defineJob, handle } from 'rowlock'
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

test.each([1, 10, 50])(
  'an idle worker of %i queues asks one statement a poll: a look at all of them',
  async (queues) => {
    const served = Object.fromEntries(Array.from({ length: queues }, (_, n) => [`q${n}`, {}]))
    const worker = await rig.start(
      {
        handlers: [handle(job, () => {})],
        queues: served,
        poll: 50,
        listen: false,
        lease: '1h',
        heartbeat: '20m',
        maintenance: '1h',
      },
      proxy.url,
    )
    const looks = () => rig.db.value<number>('select count(*)::integer from looks')
    await until('it has looked a few times', async () => (await looks()) >= 3)
    const mark = proxy.statements.length
    const from = await looks()
    await until('it has looked ten times more', async () => (await looks()) >= from + 10)
    await worker.stop()
    const asked = proxy.statements.slice(mark).filter(({ text }) => !/"retire"/.test(text))
    expect(asked.filter(({ text }) => !/"claim"/.test(text))).toEqual([])
    const seen = await rig.db.sql('select distinct queues from looks')
    expect(seen).toEqual([{ queues }])
    await rig.db.sql('truncate looks')
  },
)
