// Notices are a word and a name, however large the job, the backlog or the number of queues; nothing is refused for
// them.

import type pg from 'pg'
import { createRowlock, defineJob, type Rowlock } from 'rowlock'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { fill, type Hand, register } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
let rowlock: Rowlock
let hand: Hand
let listener: pg.Client
const heard: string[] = []
beforeAll(async () => {
  db = await rowlockDatabase('notice size')
  rowlock = createRowlock({ connectionString: db.url })
  listener = await db.session()
  listener.on('notification', ({ payload = '' }) => void heard.push(payload))
  await listener.query(`listen "${await db.value('select rowlock.channel()')}"`)
})
beforeEach(async () => {
  hand = await register(db)
  heard.length = 0
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const job = defineJob<unknown>('job')
const sleepFor = (names: readonly string[]) =>
  db.sql('select rowlock.sleep($1, $2, $3)', [hand.id, names, new Date(Date.now() + 3_600_000)])
/** What came of this work. */
async function noticesOf(work: () => Promise<unknown>): Promise<string[]> {
  await work()
  await listener.query('select 1')
  return heard.splice(0)
}
/** The longest name, of bytes that are not characters. */
const longest = '☃'.repeat(33)

test('a job of a megabyte wakes by the name of its queue, and the longest name fits', async () => {
  await sleepFor([longest])
  const notices = await noticesOf(() => rowlock.enqueue(job, 'x'.repeat(999_000), { queue: longest }))
  expect(notices).toEqual([`queue ${longest}`])
})

test('two thousand queues in one transaction: each sleeper is told once, and nothing is refused', async () => {
  const names = Array.from({ length: 2_000 }, (_, n) => `${longest.slice(0, 30)}${n}`)
  await sleepFor(names)
  const notices = await noticesOf(() =>
    rowlock.enqueueMany(names.flatMap((queue) => [job.with(1, { queue }), job.with(2, { queue })])),
  )
  expect(notices.sort()).toEqual(names.map((name) => `queue ${name}`).sort())
})

test('a backlog of a hundred thousand changes neither number nor size of them', async () => {
  await fill(db, 100_000, { queue: `'deep'`, kind: `'job'` })
  const acts: Record<string, () => Promise<unknown>> = {
    enqueue: () => rowlock.enqueue(job, 1, { queue: 'deep' }),
    enqueueMany: () => rowlock.enqueueMany([1, 2, 3].map((n) => job.with(n, { queue: 'deep' }))),
    pause: () => rowlock.pause('deep'),
    resume: () => rowlock.resume('deep'),
    setQueue: () => rowlock.setQueue('deep', { concurrency: 3 }),
    runNow: async () => rowlock.runNow((await rowlock.enqueue(job, 1, { queue: 'deep', delay: '2h' })).id),
  }
  for (const [name, act] of Object.entries(acts)) {
    await sleepFor(['deep'])
    const notices = await noticesOf(act)
    expect([name, notices.length]).toEqual([name, expect.toSatisfy((n: number) => n <= 2)])
    for (const notice of notices) expect(Buffer.byteLength(notice)).toBeLessThan(200)
  }
})

test('whoever enqueues while nobody sleeps takes no lock that others wait for', async () => {
  await db.sql('delete from rowlock.sleeper')
  const session = await db.session()
  await session.query('begin')
  await rowlock.in(session).enqueue(job, 1, { queue: 'unheard' })
  await rowlock
    .in(session)
    .enqueueMany(Array.from({ length: 50 }, (_, n) => job.with(n, { queue: 'unheard' })))
  await session.query('commit')
  await listener.query('select 1')
  expect(heard).toEqual([])
})
