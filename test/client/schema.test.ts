// The schema of a job, asked when it is enqueued: what it sees, what is stored, what it refuses.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
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

describe('a schema', () => {
  const mail = defineJob('mail', {
    input: z.object({ to: z.email(), at: z.coerce.date(), template: z.string().default('welcome') }),
  })

  test('is asked about the JSON, and what it makes of it is not stored', async () => {
    const { id } = await rowlock.enqueue(mail, {
      to: 'ada@example.org',
      at: new Date('2030-01-01T00:00:00Z'),
    })
    expect((await rowlock.job(id))!.input).toEqual({ to: 'ada@example.org', at: '2030-01-01T00:00:00.000Z' })
  })

  test('that refuses says what and where; alone without an index, among others with it', async () => {
    const bad = { to: 'nobody', at: 'x' } as never
    const alone = await failure(rowlock.enqueue(mail, bad))
    expect(alone).toMatchObject({ code: 'INPUT_REFUSED', issues: [{ path: ['to'] }, { path: ['at'] }] })
    expect(alone.index).toBeUndefined()
    expect(alone.message).toMatch(/^The input of "mail" was refused/)
    const good = mail.with({ to: 'ada@example.org', at: 0 })
    expect(await failure(rowlock.enqueueMany([good, mail.with(bad)]))).toMatchObject({
      code: 'INPUT_REFUSED',
      index: 1,
      issues: [{ path: ['to'] }, { path: ['at'] }],
    })
    expect(await failure(rowlock.enqueueMany([mail.with(bad)]))).toMatchObject({ index: 0 })
    expect(await stored()).toBe(0)
  })

  test('may answer later', async () => {
    const slow = defineJob('slow', { input: z.number().refine(async (n) => n > 0, 'must be above 0') })
    await rowlock.enqueueMany([slow.with(1), note.with('x'), slow.with(2)])
    expect(await inputs()).toEqual([1, 'x', 2])
    expect(await failure(rowlock.enqueueMany([slow.with(1), slow.with(-1)]))).toMatchObject({
      code: 'INPUT_REFUSED',
      index: 1,
    })
    expect(await stored()).toBe(3)
  })
})
