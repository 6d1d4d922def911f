// A queue with a great backlog, and rows that somebody holds: neither keeps the others waiting.

import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fill } from '../engine/by-hand.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('fair queues')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<number>('k')
const names = Array.from({ length: 9 }, (_, n) => `small${n}`)

test('of ten queues one has 100,000 jobs: those of the others start among its first few hundred', async () => {
  await fill(rig.db, 100_000, {
    queue: `'great'`,
    input: "'0'",
    available_at: `clock_timestamp() - interval '1 day'`,
  })
  const order: string[] = []
  const handler = handle(job, async ({ job }) => {
    order.push(job.queue)
    await new Promise((resolve) => setTimeout(resolve, 5))
  })
  const queues = Object.fromEntries(
    ['great', ...names].map((name) => [name, { concurrency: 4, prefetch: 4 }]),
  )
  await rig.start({ handlers: [handler], queues })
  await until('it is at work', () => order.length > 20)
  // Somebody holds the next row of the great queue, and of a small one.
  const holder = await rig.db.session()
  await holder.query('begin')
  await holder.query(
    `update rowlock.waiting set metadata = '{}' where id =
       (select id from rowlock.waiting where queue = 'great' order by available_at, id limit 1 offset 50)`,
  )
  const held = await rig.rowlock.enqueue(job, 1, { queue: names[0]!, delay: '1h' })
  await holder.query('update rowlock.waiting set available_at = now() where id = $1', [held.id])
  for (let round = 0; round < 5; round++) {
    const since = order.length
    const all = await rig.rowlock.enqueueMany(names.map((queue) => job.with(round, { queue })))
    for (const { id } of all) await rig.becomes(id, 'done')
    // Up to the last of them: how long it took us to look is no matter.
    const last = order.findLastIndex((queue) => queue !== 'great')
    const mine = order.slice(since, last + 1)
    for (const name of names) expect(mine).toContain(name)
    expect(mine.filter((queue) => queue === 'great').length).toBeLessThan(1_500)
  }
  const before = order.length
  await until(
    'the great one goes on as well',
    () => order.slice(before).filter((q) => q === 'great').length > 100,
  )
  // What is held is all that waits for its holder.
  await holder.query('commit')
  await rig.becomes(held.id, 'done')
  await rig.db.sql(`delete from rowlock.waiting where queue = 'great'`)
})
