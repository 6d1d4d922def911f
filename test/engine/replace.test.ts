// What is there already: an object in the way, an older function, a step outside a transaction that was interrupted.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import type { Migration, Routine } from '../../src/engine/migration.ts'
import { MIGRATIONS, ROUTINES } from '../../src/engine/sql.generated.ts'
import { codeOf, type Ground, ground, note } from '../support/ground.ts'
import { until } from '../support/until.ts'

describe('what is in the way', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('in the way')
  })
  afterAll(() => at.drop())

  const THINGS: [string, string, RegExp][] = [
    [
      'a table of a name',
      'create table taken.waiting (mine text)',
      /"waiting" already exists.*schema of its own/s,
    ],
    ['a table of the bookkeeping’s name', 'create table taken.migration (mine text)', /schema of its own/],
    [
      'an index',
      'create table taken.t (a int); create index waiting_dispatch on taken.t (a)',
      /already exists.*schema of its own/s,
    ],
    ['a type', `create type taken.waiting as enum ('a')`, /already exists.*schema of its own/s],
    ['a sequence', 'create sequence taken.job_id', /already exists.*schema of its own/s],
    [
      'a function of the same signature',
      `create function taken.now() returns timestamptz language sql as 'select null::timestamptz'`,
      /now.*already.*schema of its own/s,
    ],
    [
      'a function of another signature',
      `create function taken.enqueue(int) returns int language sql as 'select 1'`,
      /enqueue.*already.*schema of its own/s,
    ],
    ['a table where the view is', 'create table taken.job (mine text)', /schema of its own/],
  ]
  test.each(THINGS)(
    '%s is MIGRATION_FAILED: it stays, and nothing of ours is made',
    async (_, thing, message) => {
      await at.sql('create schema taken')
      await at.sql(thing)
      const objects = () =>
        at.sql(
          `with s as (select 'taken'::regnamespace as s)
          select 'table' as what, relname::text as name, c.oid::integer from pg_class c, s where relnamespace = s
          union all select 'function', proname::text, p.oid::integer from pg_proc p, s where pronamespace = s
          union all select 'type', typname::text, t.oid::integer from pg_type t, s where typnamespace = s
          order by 1, 2`,
        )
      const before = await objects()
      const error = await migrate(at.database({ schema: 'taken' })).catch((error) => error)
      expect([error.code, error.message]).toEqual(['MIGRATION_FAILED', expect.stringMatching(message)])
      expect(await objects()).toEqual(before)
      await at.sql('drop schema taken cascade')
    },
  )
})

describe('a step outside a transaction', () => {
  const outside: Migration = {
    number: 900,
    name: 'tenants',
    hash: 'h900',
    breaking: false,
    transaction: false,
    sql: `-- Two indexes; a semicolon in a comment; is no end.
create index concurrently if not exists waiting_tenant_try
  on rowlock.waiting (tenant_id);

create index concurrently if not exists "waiting Kind try" on rowlock.waiting (kind);
`,
  }
  const after: Migration = {
    number: 901,
    name: 'after',
    hash: 'h901',
    breaking: false,
    transaction: true,
    sql: `comment on index rowlock.waiting_tenant_try is 'made';`,
  }
  const migrations = [...MIGRATIONS, outside, after]
  const indexes = (at: Ground, schema = 'rowlock') =>
    at.sql(
      `select c.relname as name, i.indisvalid as valid, obj_description(c.oid) as comment
         from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relname like '%try' order by 1`,
      [schema],
    )
  const BOTH = [
    { name: 'waiting Kind try', valid: true, comment: null },
    { name: 'waiting_tenant_try', valid: true, comment: 'made' },
  ]

  test('runs once, in its place, when many migrate at once', async () => {
    const at = await ground('outside')
    // Where nothing is there yet, all of it is one transaction.
    await migrate(at.database())
    const reports = await Promise.all(Array.from({ length: 6 }, () => migrate(at.database(), { migrations })))
    expect(reports.flatMap(({ applied }) => applied)).toHaveLength(2)
    expect(reports.flatMap(({ applied }) => applied)).toEqual(
      expect.arrayContaining(['0900_tenants', '0901_after']),
    )
    expect(await indexes(at)).toEqual(BOTH)
    const rows = await at.sql('select number from rowlock.migration order by number')
    expect(rows.map(({ number }) => number)).toEqual(migrations.map(({ number }) => number))
    await at.drop()
  })

  test('that was interrupted is mended by the next run, and an index of somebody else is left alone', async () => {
    const at = await ground('interrupted')
    const rowlock = at.client({ schema: 'a b' })
    await rowlock.migrate()
    await rowlock.enqueueMany([note.with(1), note.with(2)])
    // What an interrupted build leaves: there, and invalid. A unique one over equal values fails half-way.
    expect(
      await codeOf(at.sql('create unique index concurrently waiting_tenant_try on "a b".waiting (kind)')),
    ).toBe('23505')
    expect(
      await codeOf(at.sql('create unique index concurrently someone_else_try on "a b".waiting (kind)')),
    ).toBe('23505')
    expect(await indexes(at, 'a b')).toMatchObject([{ valid: false }, { valid: false }])
    await migrate(at.database({ schema: 'a b' }), { migrations })
    expect(await indexes(at, 'a b')).toEqual([
      { name: 'someone_else_try', valid: false, comment: null },
      ...BOTH,
    ])
    await at.drop()
  })

  test('whose process dies in the middle goes on with the next one, longer than the role may sit idle', async () => {
    const at = await ground('dies')
    const url = await at.role('hasty', [
      `set idle_in_transaction_session_timeout = '2s'`,
      `set statement_timeout = '2s'`,
    ])
    await at.admin(`create schema rowlock authorization ${new URL(url).username}`)
    await migrate(at.database({ url }))
    // A build waits for every transaction that has a snapshot.
    const old = new pg.Client({ connectionString: at.direct })
    old.on('error', () => {})
    await old.connect()
    await old.query('begin isolation level repeatable read')
    await old.query('select 1')
    const building = () =>
      at.admin<{ pid: number; old: boolean }>(
        `select pid, clock_timestamp() - query_start > interval '2500 ms' as old from pg_stat_activity
          where datname = current_database() and query ilike 'create index concurrently%' and state = 'active'`,
      )
    const dying = migrate(at.database({ url }), { migrations })
    const died = expect(dying).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    await until('it builds, beyond the time of the role', async () => (await building())[0]?.old)
    const [builder] = await building()
    await at.admin('select pg_terminate_backend($1, 5000)', [builder!.pid])
    await died
    expect(await indexes(at)).toMatchObject([{ valid: false }])
    const again = migrate(at.database({ url }), { migrations })
    const slow = () =>
      at.admin(
        `select from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
            and query ilike '%index concurrently%' and clock_timestamp() - query_start > interval '2500 ms'`,
      )
    await until(
      'it waits, beyond the time of the role, to drop what was left',
      async () => (await slow()).length > 0,
    )
    await old.end()
    await again
    expect(await indexes(at)).toEqual(BOTH)
    await at.drop()
  })
})

describe('a function', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('functions')
    await migrate(at.database())
  })
  afterAll(() => at.drop())

  const probe = (hash: string, sql: string, name = 'probe'): Routine => ({ name, hash, sql })
  const put = (...routines: Routine[]) => migrate(at.database(), { routines: [...ROUTINES, ...routines] })
  const found = async () =>
    (
      await at.sql(
        `select pg_get_function_identity_arguments(p.oid) as arguments,
                pg_get_function_result(p.oid) as result, proacl::text as acl
           from pg_proc p where p.pronamespace = 'rowlock'::regnamespace and p.proname = 'probe'`,
      )
    ).map(({ arguments: args, result, acl }) => [args, result, acl.includes('caller')])
  const sql = (args: string, result: string, body: string) =>
    `create or replace function rowlock.probe(${args}) returns ${result}
     language sql as $rowlock$ select ${body} $rowlock$;`

  test('with other arguments takes the place of the old one: one signature, the same callers', async () => {
    const caller = new URL(await at.role('caller')).username
    await put(probe('1', sql('a integer', 'integer', 'a')))
    expect(await found()).toEqual([['a integer', 'integer', false]])
    await at.sql(`grant execute on function rowlock.probe to ${caller}`)
    await put(probe('2', sql('a integer, b integer default 1', 'integer', 'a + b')))
    expect(await found()).toEqual([['a integer, b integer', 'integer', true]])
    expect(await at.sql('select rowlock.probe(1) as n')).toEqual([{ n: 2 }])
  })

  test('with another return type, or another name of an argument, too', async () => {
    await put(probe('3', sql('a integer, b integer default 1', 'text', `'x'`)))
    expect(await found()).toEqual([['a integer, b integer', 'text', true]])
    await put(probe('4', sql('a integer, c integer default 1', 'text', `'x'`)))
    expect(await found()).toEqual([['a integer, c integer', 'text', true]])
  })

  test('that is there twice is there once afterwards, and it is the right one', async () => {
    await at.sql(`create function rowlock.probe(a text) returns text language sql as 'select a'`)
    await put(probe('5', sql('a integer, c integer default 1', 'text', `'y'`)))
    expect(await found()).toEqual([['a integer, c integer', 'text', true]])
    expect(await at.sql('select rowlock.probe(1) as n')).toEqual([{ n: 'y' }])
  })

  test('whose text is the same is left as it is', async () => {
    expect((await put(probe('5', 'not even SQL'))).replaced).toEqual([])
  })

  test('that is not SQL fails the migration, with nothing half done', async () => {
    const broken = probe('6', 'create or replace function rowlock.probe(')
    const other = probe(
      '1',
      'create or replace function rowlock.other() returns int language sql as $rowlock$ select 1 $rowlock$;',
      'other',
    )
    await expect(put(other, broken)).rejects.toMatchObject({ code: 'MIGRATION_FAILED' })
    expect(
      await at.sql(`select from pg_proc where proname = 'other' and pronamespace = 'rowlock'::regnamespace`),
    ).toEqual([])
    expect(await at.sql('select rowlock.probe(1) as n')).toEqual([{ n: 'y' }])
  })

  test('that is not there after all fails the migration', async () => {
    await expect(
      put(probe('7', 'create or replace view rowlock.other_name as\nselect 1 as a;', 'phantom')),
    ).rejects.toThrow(/are missing: phantom/)
  })

  test('a view may get other columns, and keeps its readers', async () => {
    const reader = new URL(await at.role('reader')).username
    const view = (hash: string, columns: string) =>
      probe(hash, `create or replace view rowlock.look as\nselect ${columns};`, 'look')
    await put(view('1', '1 as a, 2 as b'))
    await at.sql(`grant select on rowlock.look to ${reader}`)
    await put(view('2', '2 as b, 3 as c'))
    expect(await at.sql('select * from rowlock.look')).toEqual([{ b: 2, c: 3 }])
    expect(await at.sql(`select has_table_privilege('${reader}', 'rowlock.look', 'select') as may`)).toEqual([
      { may: true },
    ])
  })
})
