// Middleware around enqueue: what it sees and may change, and what it may not.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { failure } from './refused.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('client enqueue')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})
beforeEach(() => db.sql('truncate rowlock.waiting, rowlock.dedupe, rowlock.payload'))

const note = defineJob<unknown>('note')
const stored = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const inputs = async () =>
  (await db.sql('select input from rowlock.waiting order by id')).map((row: { input: unknown }) => row.input)

describe('middleware', () => {
  const fresh = () => createRowlock({ pool: db.pool })

  test('wraps each statement, the first one added outermost, and may replace what is stored', async () => {
    const seen: string[] = []
    const client = fresh()
      .use(async (context, next) => {
        seen.push(`a ${context.requests.length} ${context.inTransaction}`)
        return next()
      })
      .use(async (context, next) => {
        context.requests = context.requests.map((request) => ({ ...request, input: 'hidden' }))
        const results = await next()
        seen.push(`b ${results.length}`)
        return results
      })
    await client.enqueue(note, 'secret')
    const session = await db.session()
    await session.query('begin')
    await client.in(session).enqueueMany([note.with(1), note.with(2)])
    await session.query('commit')
    expect(seen).toEqual(['a 1 false', 'b 1', 'a 2 true', 'b 2'])
    expect(await inputs()).toEqual(['hidden', 'hidden', 'hidden'])
  })

  test('that forgets the answer, or drops a job, is refused', async () => {
    const forgets = fresh().use((async (_: unknown, next: () => Promise<unknown>) => {
      await next()
    }) as never)
    expect(await failure(forgets.enqueue(note, 1))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'middleware',
    })
    await db.sql('truncate rowlock.waiting')
    const drops = fresh().use(async (context, next) => {
      context.requests = []
      return next()
    })
    expect(await failure(drops.enqueue(note, 1))).toMatchObject({
      code: 'INVALID_OPTION',
      path: 'middleware',
    })
    expect(await stored()).toBe(0)
  })

  test('whose own error speaks of a timeout is heard as it threw', async () => {
    const own = new Error('timeout of the tracer: socket closed')
    const client = fresh().use(async () => Promise.reject(own))
    expect(await client.enqueue(note, 1).catch((error) => error)).toBe(own)
    expect(
      await client.enqueueMany(Array.from({ length: 1_500 }, () => note.with(1))).catch((error) => error),
    ).toBe(own)
  })
})
