// Starts, stops, pauses and closes in any order, at once and twice: the end is what the last call says, and it comes.

import { createRowlock, defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { random, seedOf } from '../engine/by-hand.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let next: () => number
beforeAll(async () => {
  rig = await makeRig('lifecycle')
  next = random(seedOf('lifecycle'))
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<number>('job')
const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!

test('starts and stops in any order, at once and again, end stopped and leave nothing', async () => {
  for (let round = 0; round < 40; round++) {
    const rowlock = createRowlock({ connectionString: rig.db.url })
    const worker = rowlock.worker({ handlers: [handle(job, () => {})], poll: 50, logger: rig.logger })
    const codes = new Set<string>()
    const calls: Promise<unknown>[] = []
    for (let n = 0; n < 1 + Math.floor(next() * 6); n++) {
      const act = pick(['start', 'start', 'stop', 'stop now', 'enqueue'] as const)
      const call = {
        start: () => worker.start(),
        stop: () => worker.stop(),
        'stop now': () => worker.stop({ grace: 0 }),
        enqueue: () => rowlock.enqueue(job, n),
      }[act]
      const done = call().catch((error: { code: string }) => void codes.add(error.code))
      if (next() < 0.5) await done
      else calls.push(done)
    }
    await worker.stop()
    await Promise.all(calls)
    expect(worker.status).toMatchObject({ state: 'stopped', running: 0, prefetched: 0 })
    expect([...codes].filter((code) => code !== 'CLOSED')).toEqual([])
    await expect(worker.start()).rejects.toMatchObject({ code: 'CLOSED' })
    if (next() < 0.5) await Promise.all([rowlock.close(), rowlock.close()])
    else await rowlock.close()
  }
  const sessions = `select from pg_stat_activity
    where datname = current_database() and application_name like 'rowlock %'`
  await until('no session is left', async () => (await rig.db.sql(sessions)).length === 0)
  expect(await rig.db.value('select count(*)::integer from rowlock.worker')).toBe(0)
  await rig.start({ handlers: [handle(job, () => {})] })
  await rig.idle()
})

test('pauses and resumes in any order, by several at once, end as the last one that was answered', async () => {
  const others = [1, 2, 3].map(() => createRowlock({ connectionString: rig.db.url }))
  await rig.rowlock.pause('default') // a queue that nothing ever named is not known
  for (let round = 0; round < 15; round++) {
    await Promise.all(others.map((one) => (next() < 0.5 ? one.pause('default') : one.resume('default'))))
    const last = pick(['pause', 'resume'] as const)
    await pick(others)[last]('default')
    expect((await rig.rowlock.queue('default')).pausedAt !== null).toBe(last === 'pause')
  }
  await rig.rowlock.resume('default')
  await Promise.all(others.map((one) => one.close()))
})
