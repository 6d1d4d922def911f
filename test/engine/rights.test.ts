// With few rights, and whatever a role is set to: no superuser, nothing for PUBLIC, no setting that changes a life.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import { quoteIdentifier } from '../../src/engine/schema.ts'
import { codeOf, type Ground, ground, life, messageOf, note } from '../support/ground.ts'

describe('a role', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('rights', { owned: false })
    await at.admin('revoke all on schema public from public')
  })
  afterAll(() => at.drop())

  test('without CREATE on the database gets one clear error, and nothing is made', async () => {
    const work = migrate(at.database({ schema: 'mine' }))
    const error = await work.catch((error) => error)
    expect(error).toMatchObject({ code: 'MIGRATION_FAILED' })
    expect(error.message).toMatch(/no schema "mine".*create schema "mine" authorization/s)
    expect(await at.admin(`select from pg_namespace where nspname = 'mine'`)).toEqual([])
  })

  test('is enough to migrate and work when the schema was made for it', async () => {
    const [owner] = await at.sql(
      'select current_user as name, rolsuper from pg_roles where rolname = current_user',
    )
    expect(owner).toMatchObject({ rolsuper: false })
    await at.admin(`create schema "made for it" authorization ${owner.name}`)
    const rowlock = at.client({ schema: 'made for it' })
    await rowlock.migrate()
    await life(rowlock)
  })

  test('is enough with CREATE and USAGE on a schema of somebody else', async () => {
    const [owner] = await at.sql('select current_user as name')
    await at.admin(`create schema lent; grant create, usage on schema lent to ${owner.name}`)
    const rowlock = at.client({ schema: 'lent' })
    await rowlock.migrate()
    await life(rowlock)
  })

  test('that has no right in the schema is told which it needs', async () => {
    await at.admin('create schema closed')
    expect(await messageOf(migrate(at.database({ schema: 'closed' })))).toMatch(
      /needs CREATE on the schema "closed"/,
    )
  })

  test('of an application needs USAGE and EXECUTE to enqueue, and can read and write no table', async () => {
    const [owner] = await at.sql('select current_user as name')
    await at.admin(`create schema shop authorization ${owner.name}`)
    await at.client({ schema: 'shop' }).migrate()
    const url = await at.role('app')
    const name = new URL(url).username
    const app = at.client({ url, schema: 'shop' })
    expect(await codeOf(app.enqueue(note, 1))).toBe('42501')
    await at.sql(`grant usage on schema shop to ${name}`)
    // A new function is callable by everybody, unless somebody thinks of it.
    expect(await codeOf(app.enqueue(note, 1))).toBe('42501')
    await at.sql(`grant execute on all functions in schema shop to ${name}`)
    const { id } = await app.enqueue(note, { n: 1 }, { dedupeKey: 'k' })
    expect(await app.enqueue(note, { n: 1 }, { dedupeKey: 'k' })).toEqual({ id, created: false })
    await app.enqueueMany([note.with('x'.repeat(5_000))])
    expect(await app.cancel(id)).toBe('cancelled')
    const direct = new pg.Client({ connectionString: url })
    await direct.connect()
    const codes: Record<string, string> = {}
    for (const text of [
      'select * from shop.waiting',
      'select * from shop.job',
      'select * from shop.payload',
      'insert into shop.waiting default values',
      'delete from shop.running',
      'create table shop.mine ()',
      'create or replace function shop.now() returns timestamptz language sql as $$ select null $$',
      `select * from shop.enqueue('sql', '{}')`,
    ]) {
      codes[text] = await codeOf(direct.query(text))
    }
    await direct.end()
    expect(new Set(Object.values(codes).slice(0, -1))).toEqual(new Set(['42501']))
    expect(Object.values(codes).at(-1)).toBe('no error')
    expect(await codeOf(app.job(id))).toBe('42501')
    await at.sql(`grant select on shop.job, shop.attempt to ${name}`)
    expect(await app.job(id)).toMatchObject({ state: 'cancelled' })
  })

  test('PUBLIC may do nothing with what Rowlock made', async () => {
    const [row] = await at.admin(
      `select array(select p.proname::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                     where n.nspname = 'shop' and (p.proacl is null
                        or exists (select from aclexplode(p.proacl) a where a.grantee = 0))) as functions,
              array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = 'shop'
                       and exists (select from aclexplode(c.relacl) a where a.grantee = 0)) as tables`,
    )
    expect(row).toEqual({ functions: [], tables: [] })
  })
})

describe('what a role is set to', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('settings')
  })
  afterAll(() => at.drop())

  const SETTINGS: [string, string[]][] = [
    ['an empty search_path', [`set search_path = ''`]],
    ['a search_path into a trap', ['set search_path = trap, pg_catalog']],
    [
      'another place',
      [
        `set timezone = 'Asia/Kathmandu'`,
        `set datestyle = 'German, DMY'`,
        `set intervalstyle = 'sql_standard'`,
      ],
    ],
    [
      'strings of old',
      ['set standard_conforming_strings = off', `set bytea_output = 'escape'`, 'set backslash_quote = off'],
    ],
    ['serializable', [`set default_transaction_isolation = 'serializable'`]],
    ['repeatable read', [`set default_transaction_isolation = 'repeatable read'`]],
    [
      'few digits',
      ['set extra_float_digits = -15', 'set row_security = on', 'set jit = on', 'set jit_above_cost = 0'],
    ],
    [
      'short tempers',
      [
        `set lock_timeout = '5s'`,
        `set statement_timeout = '5s'`,
        `set idle_in_transaction_session_timeout = '5s'`,
      ],
    ],
  ]
  test.each(SETTINGS)('%s: a job lives its life all the same', async (_, settings) => {
    const n = SETTINGS.findIndex(([name]) => name === _)
    const url = await at.role(`set${n}`, settings)
    const name = new URL(url).username
    await at.admin(`create schema if not exists trap; grant usage on schema trap to public`)
    await at.admin(
      `create or replace function trap.now() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$`,
    )
    // A schema whose name needs a backslash in every literal of it.
    const schema = `set\\${n}'`
    await at.admin(`create schema ${quoteIdentifier(schema)} authorization ${name}`)
    const rowlock = at.client({ url, schema })
    await rowlock.migrate()
    await life(rowlock)
    const { id } = await rowlock.enqueue(note, 1, {
      availableAt: new Date('2030-01-31T12:00:00.123Z'),
      expiresIn: '36h',
      timeout: '90m',
    })
    expect((await rowlock.job(id))!.availableAt).toEqual(new Date('2030-01-31T12:00:00.123Z'))
    await rowlock.runNow(id)
    await rowlock.setQueue('default', { targetWait: '90m' })
  })

  test('read only: it migrates, and says clearly that nothing can be enqueued', async () => {
    const url = await at.role('reader', ['set default_transaction_read_only = on'])
    await at.admin(`create schema reader authorization ${new URL(url).username}`)
    const rowlock = at.client({ url, schema: 'reader' })
    await rowlock.migrate()
    const error = await rowlock.enqueue(note, 1).catch((error) => error)
    expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    expect(error.message).toMatch(/takes no writes.*default_transaction_read_only/s)
  })
})
