import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('durable')
  await db.sql(`alter database ${new URL(db.url).pathname.slice(1)} set synchronous_commit = off`)
})
afterAll(() => db.drop())

/** What a transaction would commit with after this statement. */
async function commitsWith(statement: string, values: unknown[] = []): Promise<string> {
  const client = await db.session()
  await client.query('begin')
  await client.query(statement, values)
  const { rows } = await client.query('show synchronous_commit')
  await client.query('commit')
  return rows[0].synchronous_commit
}

test('an enqueue waits for the disk though the database is set not to', async () => {
  expect(await commitsWith(`select rowlock.enqueue('mail')`)).toBe('on')
})

test('a claim waits for the disk though the database is set not to', async () => {
  const worker = randomUUID()
  expect(await commitsWith('select rowlock.register($1, $2, $3)', [worker, '1 minute', '{}'])).toBe('off')
  const wants = JSON.stringify([{ queue: 'default', limit: 1, kinds: ['mail'] }])
  expect(await commitsWith('select rowlock.claim($1, $2)', [worker, wants])).toBe('on')
})

test('a stricter choice of the role is left alone', async () => {
  const client = await db.session()
  await client.query('begin')
  await client.query('set local synchronous_commit = remote_apply')
  await client.query(`select rowlock.enqueue('mail')`)
  const { rows } = await client.query('show synchronous_commit')
  await client.query('rollback')
  expect(rows[0].synchronous_commit).toBe('remote_apply')
})
