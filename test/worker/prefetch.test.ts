// Jobs that were claimed ahead of a free slot, and what may happen to them while they wait for it.

import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('prefetch')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<string>('job')

test('a prefetched job that expired before its turn is cancelled and never runs', async () => {
  const ran: string[] = []
  const ends: (() => void)[] = []
  const handler = handle(job, ({ input }) => {
    ran.push(input)
    if (input === 'long') return new Promise<void>((resolve) => ends.push(resolve))
    return undefined
  })
  const worker = await rig.start({
    handlers: [handler],
    queues: { default: { concurrency: 1, prefetch: 3 } },
  })
  const long = await rig.rowlock.enqueue(job, 'long')
  await until('it runs', () => ends.length === 1)
  // It must be claimed before that, on a machine that is busy too.
  const late = await rig.rowlock.enqueue(job, 'late', { expiresIn: '6s' })
  const next = await rig.rowlock.enqueue(job, 'next', { expiresIn: '1h' })
  await until('both are prefetched', () => worker.status.prefetched === 2)
  await until('the first of them is over', () =>
    rig.db.value('select expires_at < clock_timestamp() from rowlock.running where id = $1', [late.id]),
  )
  expect((await rig.rowlock.job(late.id))?.state).toBe('running')
  ends[0]!()
  expect(await rig.becomes(late.id, 'cancelled')).toMatchObject({
    reason: 'expired',
    failures: 0,
    attempts: [{ outcome: 'handed_back', startedAt: null }],
  })
  await rig.becomes(next.id, 'done')
  await rig.becomes(long.id, 'done')
  expect(ran).toEqual(['long', 'next'])
})
