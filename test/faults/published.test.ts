// Tables that are published for logical replication: nothing that Rowlock does to a row is refused for want of a key.

import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('published')
  await rig.db.sql('create publication everything for all tables')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<string>('job', { retry: { backoff: fixed(0), maxAttempts: 2 } })

test('every phase of a job, its retries, its dead letter and its purge go through', async () => {
  await rig.start({
    handlers: [
      handle(job, ({ input }) => {
        if (input === 'bad') throw new Error('no')
        return input.length
      }),
    ],
  })
  const well = await rig.rowlock.enqueue(job, 'x'.repeat(10_000), { dedupeKey: 'well' })
  const bad = await rig.rowlock.enqueue(job, 'bad')
  const late = await rig.rowlock.enqueue(job, 'late', { delay: '1h' })
  await rig.becomes(well.id, 'done')
  await rig.becomes(bad.id, 'dead_letter')
  expect(await rig.rowlock.cancel(late.id)).toBe('cancelled')
  await rig.rowlock.redrive(bad.id)
  await rig.becomes(bad.id, 'dead_letter')
  await rig.rowlock.discard(bad.id)
  await rig.rowlock.retry(well.id)
  await rig.idle()
  for (const { id } of [well, bad, late]) await rig.db.sql('select rowlock.purge($1)', [id])
  expect(await rig.db.value('select count(*)::integer from rowlock.finished')).toBe(1)
  expect(await rig.db.value('select count(*)::integer from rowlock.attempt')).toBe(0)
  await rig.db.sql('select rowlock.reap(), rowlock.sweep(), rowlock.expire(), rowlock.make_days(null, 20)')
})
