import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('enqueue')
})
afterAll(() => db.drop())

test('a job enqueued from SQL is there, due at once', async () => {
  const [row] = await db.sql(`select * from rowlock.enqueue('mail', '{"to":"a"}')`)
  expect(row.created).toBe(true)
  const [job] = await db.sql('select * from rowlock.job where id = $1', [row.id])
  expect(job).toMatchObject({
    state: 'queued',
    queue: 'default',
    kind: 'mail',
    input: { to: 'a' },
    attempt: 0,
  })
})
