// Transactions of Rowlock's own whose process says nothing more: the server ends them by itself, and lets go of what
// they hold.

import { createRowlock, defineJob } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { killChildren, startChild } from '../support/child.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('idle transactions')
  await db.sql('create table business (id integer)')
  await db.sql('create table seen (idle text)')
  await db.sql(`create function see() returns trigger language plpgsql as $$
    begin
      insert into public.seen values (current_setting('idle_in_transaction_session_timeout'));
      return null;
    end $$`)
  await db.sql(
    'create trigger see after insert on rowlock.waiting for each statement execute function public.see()',
  )
})
afterEach(async () => {
  await killChildren()
  await db.sql('truncate seen')
})
afterAll(() => db.drop())

const job = defineJob<number>('job')
const held = async () =>
  (await db.sql(`select from pg_locks where relation = 'business'::regclass and granted`)).length

test('the server ends by itself a transaction of ours whose process was stopped in it', async () => {
  const child = startChild('faults/idle-transaction-child.ts', { url: db.direct })
  await child.until('it holds a lock', ({ holds }) => holds)
  child.signal('SIGSTOP')
  expect(await held()).toBe(1)
  await until('nothing is held any more', async () => (await held()) === 0)
  await db.sql('alter table business add column if not exists more integer')
  child.signal('SIGCONT')
  const { error } = await child.until('it knows', (message) => message.error !== undefined)
  expect(error).toContain('idle-in-transaction timeout')
})

test('each transaction of ours says how long it may be idle, and the session keeps nothing of it', async () => {
  const rowlock = createRowlock({ connectionString: db.direct, statementTimeoutMs: 7_000, maxConnections: 1 })
  const seen = async () => new Set((await db.sql('select distinct idle from seen')).map(({ idle }) => idle))
  // Read as it goes: whoever makes the jobs may take his time.
  await rowlock.enqueueMany(Array.from({ length: 1_001 }, (_, n) => job.with(n)))
  expect(await seen()).toEqual(new Set(['10min']))
  await db.sql('truncate seen')
  // Two statements for their size: nobody is waited for in between.
  const large = defineJob<string>('large')
  await rowlock.enqueueMany(Array.from({ length: 5 }, () => large.with('x'.repeat(900_000))))
  expect(await seen()).toEqual(new Set(['7s']))
  await db.sql('truncate seen')
  // The same connection, one statement and no transaction.
  await rowlock.enqueue(job, 1)
  expect(await seen()).toEqual(new Set(['0']))
  await rowlock.close()
})

test('a role whose own bound is shorter does not end a transaction of ours before it', async () => {
  const url = new URL(db.direct)
  url.searchParams.set('options', '-c idle_in_transaction_session_timeout=50ms')
  const database = new Database({ connectionString: url.href, statementTimeoutMs: 5_000 })
  const said = await database.transaction(async (client) => {
    await client.query('lock table business in exclusive mode')
    await db.sql('select pg_sleep(0.3)')
    const { rows } = await client.query('select 1 as one')
    return rows
  })
  expect(said).toEqual([{ one: 1 }])
  await database.close()
})
