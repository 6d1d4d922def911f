// The listening session is ended, and workers come and go in a stream of notices.

import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('listener')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<number>('job')
const sleepy = {
  handlers: [handle(job, () => {})],
  listen: true,
  poll: '5m',
  pollListening: '5m',
  lease: '1h',
} as const
const end = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and application_name = 'rowlock listen'`

test('when the listener was ended and is back, each queue wakes its workers again', async () => {
  const names = ['a', 'b', 'c']
  const worker = await rig.start({ ...sleepy, queues: Object.fromEntries(names.map((name) => [name, {}])) })
  // The fourth is served by a worker that comes later.
  const later = await rig.start({ ...sleepy, queues: { d: {} } })
  const both = [worker, later]
  await until('both listen', () => both.every(({ status }) => status.listening))
  for (let round = 0; round < 3; round++) {
    const changes = both.map(() => [] as boolean[])
    const listeners = both.map(
      (_, n) =>
        ({ proven }: { proven: boolean }) =>
          void changes[n]!.push(proven),
    )
    for (const [n, one] of both.entries()) one.on('listening', listeners[n]!)
    await rig.db.sql(end)
    await until('both have lost it and are back', () =>
      changes.every(([lost, back]) => lost === false && back),
    )
    await until('all queues are slept for', async () => {
      return (await rig.db.value('select count(distinct queue)::integer from rowlock.sleeper')) === 4
    })
    for (const queue of [...names, 'd']) {
      const { id } = await rig.rowlock.enqueue(job, round, { queue })
      await rig.becomes(id, 'done')
    }
  }
})

test('workers that start and stop in a stream of notices end quietly, each of them', async () => {
  const faults: unknown[] = []
  const hear = (fault: unknown) => void faults.push(fault)
  for (const name of ['warning', 'unhandledRejection', 'uncaughtException']) process.on(name, hear)
  let isDone = false
  const sender = await rig.db.session()
  const stream = (async () => {
    while (!isDone) {
      await sender.query(
        `select pg_notify(rowlock.channel(), what)
           from unnest(array['queue default', 'cancel x', 'settings default']) as what`,
      )
    }
  })()
  try {
    for (let n = 0; n < 100; n++) {
      const worker = rig.worker(sleepy)
      const started = worker.start()
      if (n % 3 > 0) await started
      if (n % 3 > 1) await rig.db.sql(end)
      await worker.stop({ grace: 0 })
      await started
      expect(worker.status.state).toBe('stopped')
    }
  } finally {
    isDone = true
    await stream
  }
  await new Promise((resolve) => setImmediate(resolve))
  for (const name of ['warning', 'unhandledRejection', 'uncaughtException']) process.off(name, hear)
  expect(faults).toEqual([])
  await until('no session is left', async () => {
    const left = `select from pg_stat_activity where datname = current_database() and application_name like 'rowlock %'`
    return (await rig.db.sql(left)).length === 0
  })
})
