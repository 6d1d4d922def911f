import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('unhandled')
})
afterAll(() => db.drop())
beforeEach(() => db.sql('delete from rowlock.waiting; delete from rowlock.worker'))

const unhandled = () => db.sql('select queue, kind from rowlock.unhandled() order by queue, kind')
const enqueue = (queue: string, kind: string, options: object = {}) =>
  db.sql('select rowlock.enqueue($1, null, $2)', [kind, JSON.stringify({ queue, ...options })])
const register = (queue: string, kind: string, lease = '1 minute') =>
  db.sql('select rowlock.register($1, $2, $3)', [
    randomUUID(),
    lease,
    JSON.stringify({ queues: { [queue]: {} }, kinds: [kind] }),
  ])

test('nothing waits, nothing is reported', async () => {
  expect(await unhandled()).toEqual([])
})

test('a kind that no living worker handles in its queue is reported, once for all its jobs', async () => {
  for (const kind of ['a', 'a', 'b', 'c']) await enqueue('work', kind)
  await register('work', 'b')
  await register('elsewhere', 'c')
  await register('work', 'a', '0 seconds')
  expect(await unhandled()).toEqual([
    { queue: 'work', kind: 'a' },
    { queue: 'work', kind: 'c' },
  ])
})

test('a queue that nobody serves, for its name is mistyped, is reported', async () => {
  await enqueue('emial', 'mail')
  await register('email', 'mail')
  expect(await unhandled()).toEqual([{ queue: 'emial', kind: 'mail' }])
})

test('what is not due yet is no fault', async () => {
  await enqueue('work', 'a', { delay: '1 hour' })
  expect(await unhandled()).toEqual([])
})

test('since when is told, whatever the priority of the oldest', async () => {
  await enqueue('work', 'a', { available_at: '2020-01-02T00:00:00Z', priority: -5 })
  await enqueue('work', 'a', { available_at: '2020-01-03T00:00:00Z', priority: 5 })
  const [row] = await db.sql('select due_since from rowlock.unhandled()')
  expect(row.due_since).toEqual(new Date('2020-01-02T00:00:00Z'))
})
