// Days are made and dropped whatever the schema is called and whatever the role is set to.

import { afterEach, describe, expect, test } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { dropDueDays } from '../../src/engine/drop-days.ts'
import { makeDays } from '../../src/engine/maintain.ts'
import { migrate } from '../../src/engine/migrate.ts'
import { quoteIdentifier } from '../../src/engine/schema.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'

let created: TestDatabase
let database: Database
afterEach(async () => {
  await database.close()
  await created.drop()
})

async function installed(schema: string): Promise<void> {
  created = await createDatabase('drop days')
  database = new Database({ connectionString: created.url, schema })
  await migrate(database)
}

/** Noon, so many days after the first day of history: no midnight comes in between. */
async function setNow(daysLater: number): Promise<void> {
  const [first] = await days()
  const noon = `${first!.slice(-8)} 12:00Z`
  await database.query(
    `create or replace function rowlock.now() returns timestamptz language sql volatile
     as $n$ select timestamptz '${noon}' + interval '${daysLater} days' $n$`,
  )
}
const days = async () => {
  const rows = await database.query<{ day: string }>(
    `select c.relname as day from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = $1::text::regclass order by 1`,
    [`${quoteIdentifier(database.schema)}.finished`],
  )
  return rows.map(({ day }) => day)
}

describe.each(['rowlock', 'rowlock.x', 'a rowlock.b', 'Odd "name" o’clock'])('in the schema %s', (schema) => {
  test.each([true, false])(
    'days that are due are dropped, the others stay (pooled: %s)',
    async (isPooled) => {
      await installed(schema)
      const before = await days()
      await setNow(12)
      const dropped = await dropDueDays(database, isPooled)
      expect(dropped.filter((day) => day.startsWith('finished'))).toEqual(before.slice(0, 5))
      expect(await days()).toEqual(before.slice(5))
      expect(await dropDueDays(database, isPooled)).toEqual([])
    },
  )
})

test('inputs that lie in payload go with their day, and no others', async () => {
  await installed('rowlock')
  await database.query(`insert into rowlock.payload select n, '1' from generate_series(1, 2500) n`)
  await database.query(
    `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
       retention_days, state, queue, kind)
     select n, now() + case when n > 2400 then interval '2 days' else interval '0' end, now(), now(), 1, 0, 0, 7,
            'done', 'default', 'k'
       from generate_series(1, 2500) n`,
  )
  await setNow(9)
  await dropDueDays(database, false)
  const [row] = await database.query<{ n: string; least: string }>(
    'select count(*)::text as n, min(job_id)::text as least from rowlock.payload',
  )
  expect(row).toEqual({ n: '100', least: '2401' })
})

test('a day begins at midnight UTC whatever the role’s zone and date style, and meets those of others', async () => {
  await installed('rowlock')
  const name = new URL(created.url).pathname.slice(1)
  for (const setting of [
    `datestyle = 'SQL, DMY'`,
    `timezone = 'Asia/Kolkata'`,
    'standard_conforming_strings = off',
  ]) {
    await database.query(`alter database ${name} set ${setting}`)
  }
  const odd = new Database({ connectionString: created.url })
  try {
    await setNow(3)
    expect(await makeDays(odd, 10_000)).toBe(6)
    await setNow(6)
    expect(await makeDays(database, 10_000)).toBe(6)
    const bounds = await database.query<{ bound: string }>(
      `select pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c
        where c.relname like 'finished\\_7\\_%' and c.relispartition`,
    )
    expect(bounds.length).toBeGreaterThan(15)
    await setNow(30)
    const dueOdd = await odd.query('select * from rowlock.days_due()')
    expect(dueOdd).toEqual(await database.query('select * from rowlock.days_due()'))
    expect(dueOdd.length).toBeGreaterThan(30)
  } finally {
    await odd.close()
  }
})
