// Installing and upgrading: at once, again, under any name, with few rights, past what is in the way, outside a
// transaction, and as a script.

import { execFileSync, spawnSync } from 'node:child_process'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { migrate } from '../../src/engine/migrate.ts'
import type { Migration, Routine } from '../../src/engine/migration.ts'
import { migrationScript } from '../../src/engine/migration-script.ts'
import { RELEASE } from '../../src/engine/release.ts'
import { checkSchema, quoteIdentifier } from '../../src/engine/schema.ts'
import { MIGRATIONS, ROUTINES } from '../../src/engine/sql.generated.ts'
import { createRowlock, defineJob, handle, type Rowlock, type WorkerOptions } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { administer, createDatabase, type TestDatabase } from '../support/server.ts'
import { until } from '../support/until.ts'

const note = defineJob<unknown>('note')
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** A database whose owner is a plain role, and SQL in it as whoever is asked for. */
interface Ground {
  readonly url: string
  sql<Row = any>(text: string, values?: unknown[]): Promise<Row[]>
  admin<Row = any>(text: string, values?: unknown[]): Promise<Row[]>
  /** The URL for another role, made with these attributes. Gone with the database. */
  role(name: string, settings?: readonly string[]): Promise<string>
  client(options?: { readonly url?: string; readonly schema?: string }): Rowlock
  database(options?: { readonly url?: string; readonly schema?: string }): Database
  drop(): Promise<void>
}

let made = 0
async function ground(name: string, { owned = true } = {}): Promise<Ground> {
  const db: TestDatabase = await createDatabase(name)
  const suffix = `${db.name.slice(-10)}_${made++}`
  const roles: string[] = []
  const clients: { close(): Promise<void> }[] = []
  const pools: pg.Pool[] = []
  const open = (url: string) => {
    const pool = new pg.Pool({ connectionString: url, max: 3 })
    pool.on('error', () => {})
    pools.push(pool)
    return pool
  }
  const admin = open(db.url)
  const urlOf = (role: string) => {
    const url = new URL(db.url)
    url.username = role
    url.password = 'plain'
    return url.href
  }
  const self: Ground = {
    url: urlOf(`owner_${suffix}`),
    sql: async (text, values) => (await owner.query(text, values as any[])).rows,
    admin: async (text, values) => (await admin.query(text, values as any[])).rows,
    async role(name, settings = []) {
      const role = `${name}_${suffix}`
      await admin.query(`create role ${role} login nosuperuser nocreatedb nocreaterole password 'plain'`)
      roles.push(role)
      for (const setting of settings) await admin.query(`alter role ${role} ${setting}`)
      return urlOf(role)
    },
    client({ url = self.url, schema } = {}) {
      const client = createRowlock({ connectionString: url, ...(schema !== undefined && { schema }) })
      clients.push(client)
      return client
    },
    database({ url = self.url, schema } = {}) {
      const database = new Database({
        connectionString: url,
        maxConnections: 1,
        ...(schema !== undefined && { schema }),
      })
      clients.push(database)
      return database
    },
    async drop() {
      await Promise.all(clients.map((client) => client.close()))
      await Promise.all(pools.map((pool) => pool.end()))
      await db.drop()
      for (const role of roles) await administer(`drop role ${role}`)
    },
  }
  await self.role('owner')
  if (owned) await admin.query(`alter database ${db.name} owner to owner_${suffix}`)
  const owner = open(self.url)
  return self
}

/** The whole life of jobs: in, woken by LISTEN, done, one cancelled, all of it read back. */
async function life(rowlock: Rowlock, options: Partial<WorkerOptions> = {}): Promise<void> {
  const seen: unknown[] = []
  let isHeard = false
  const worker = rowlock.worker({
    handlers: [handle(note, ({ input }) => ({ seen: seen.push(input) }))],
    logger: silent,
    ...options,
  })
  worker.on('listening', ({ proven }) => {
    isHeard ||= proven
  })
  const { id } = await rowlock.enqueue(note, 'first')
  await worker.start()
  try {
    await until('LISTEN is proven', () => isHeard)
    await until('the worker sleeps', async () => (await rowlock.job(id))?.state === 'done')
    const [again, later] = await rowlock.enqueueMany([
      note.with('second'),
      note.with('later', { delay: '1h' }),
    ])
    expect(await rowlock.cancel(later!.id, { actor: 'ada' })).toBe('cancelled')
    await until('the second is done', async () => (await rowlock.job(again!.id))?.state === 'done')
    expect(await rowlock.job(id)).toMatchObject({ state: 'done', input: 'first', result: { seen: 1 } })
    expect(await rowlock.job(later!.id)).toMatchObject({ state: 'cancelled', actor: 'ada' })
    expect(seen).toEqual(['first', 'second'])
  } finally {
    await worker.stop()
  }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error) => error.code,
  )
const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error) => String(error.message),
  )

describe('many at once', () => {
  test('on an empty database all succeed, and each migration is applied once', async () => {
    for (let round = 0; round < 3; round++) {
      const at = await ground(`at once ${round}`)
      const reports = await Promise.all(Array.from({ length: 10 }, () => migrate(at.database())))
      const applied = reports.flatMap((report) => report.applied)
      expect(applied).toEqual(
        MIGRATIONS.map(({ number, name }) => `${String(number).padStart(4, '0')}_${name}`),
      )
      expect(reports.flatMap((report) => report.replaced).sort()).toEqual(
        ROUTINES.map(({ name }) => name).sort(),
      )
      const rows = await at.sql(
        'select number, name, hash, breaking, release from rowlock.migration order by number',
      )
      expect(rows).toEqual(
        MIGRATIONS.map(({ number, name, hash, breaking }) => ({
          number,
          name,
          hash,
          breaking,
          release: RELEASE,
        })),
      )
      expect(await at.admin(`select from pg_locks where locktype = 'advisory'`)).toEqual([])
      await at.drop()
    }
  })

  test('first uses of new queues, kinds and keys meet without an error', async () => {
    const at = await ground('first use')
    const rowlock = at.client()
    await rowlock.migrate()
    const clients = Array.from({ length: 8 }, () => at.client())
    const results = await Promise.all(
      Array.from({ length: 32 }, (_, n) => [
        clients[n % 8]!.enqueue(defineJob<number>('brand-new'), n, { queue: 'brand new', dedupeKey: 'one' }),
        clients[n % 8]!.pause('brand new').then(() => null),
        clients[n % 8]!.setQueue('brand new', { retentionDays: 30 }).then(() => null),
      ]).flat(),
    )
    expect(new Set(results.flatMap((result) => (result ? [result.id] : []))).size).toBe(1)
    await at.drop()
  })
})

describe('a database that has Rowlock', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('has it')
    await migrate(at.database())
  })
  afterAll(() => at.drop())

  test('is not changed by migrating again', async () => {
    const before = await catalog(at, 'rowlock')
    expect(await at.client().migrate()).toEqual({ applied: [], replaced: [] })
    expect(await catalog(at, 'rowlock')).toEqual(before)
  })

  test('can have another in another schema: neither sees the other’s jobs, nor is woken for them', async () => {
    const [one, two] = [at.client({ schema: 'one' }), at.client({ schema: 'two' })]
    await Promise.all([one.migrate(), two.migrate()])
    const { id } = await one.enqueue(note, 1)
    expect(await two.job(id)).toBeNull()
    expect(await codeOf(two.cancel(id))).toBe('JOB_NOT_FOUND')
    await life(two)
    expect(await one.job(id)).toMatchObject({ state: 'queued' })
    const [channels] = await at.sql('select one.channel() <> two.channel() as differ')
    expect(channels).toEqual({ differ: true })
  })
})

const NAMES = [
  'Jobs',
  'jobs',
  'my-jobs',
  'select',
  '1a',
  'a b',
  'a"b',
  "o'brien",
  'a$$b',
  'a$rowlock$b',
  '$rowlock$',
  'x.job',
  'rowlock.x',
  'a\\b',
  "a\\'b",
  'schéma',
  'é'.repeat(31),
  'x'.repeat(63),
  '🚣 jobs',
  'a:b %s %I',
]

describe('a schema may be called', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('names')
  })
  afterAll(() => at.drop())

  test.each(NAMES)('%s', async (schema) => {
    const rowlock = at.client({ schema })
    await rowlock.migrate()
    await life(rowlock)
    expect(await rowlock.migrate()).toEqual({ applied: [], replaced: [] })
    const [row] = await at.sql(
      `select count(*)::integer as tables from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relname = 'waiting'`,
      [schema],
    )
    expect(row).toEqual({ tables: 1 })
  })

  test('no schema was made but those', async () => {
    const found = await at.sql(`select nspname as name from pg_namespace where nspname !~ '^pg_' order by 1`)
    const others = ['information_schema', 'public']
    expect(found.map(({ name }) => name).sort()).toEqual([...NAMES, ...others].sort())
  })
})

test.each([
  ['64 bytes', 'x'.repeat(64)],
  ['64 bytes in 32 letters', 'é'.repeat(32)],
  ['a newline', 'a\nb'],
  ['NUL', 'a\0b'],
  ['half of a character', '\ud83d'],
  ['nothing', ''],
  ['what PostgreSQL keeps for itself', 'pg_jobs'],
  ['the same in capitals', 'PG_jobs'],
  ['a number', 5],
])('a schema called by %s is refused before any SQL', (_, name) => {
  expect(() => checkSchema(name)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', path: 'schema' }))
  const away = 'postgres://127.0.0.1:1/nowhere'
  expect(() => createRowlock({ connectionString: away, schema: name as string })).toThrow(/schema/)
})

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
                     where n.nspname = 'shop' and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))) as functions,
              array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = 'shop' and exists (select from aclexplode(c.relacl) a where a.grantee = 0)) as tables`,
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

describe('another release', () => {
  let db: TestRowlock
  beforeAll(async () => {
    db = await rowlockDatabase('releases')
  })
  afterAll(() => db.drop())
  const worker = () => {
    const rowlock = createRowlock({ pool: db.pool })
    return rowlock.worker({ handlers: [handle(note, () => {})], listen: false, logger: silent })
  }
  const startAndStop = async () => {
    const started = worker()
    try {
      await started.start()
    } finally {
      await started.stop()
    }
  }
  async function changed<T>(change: string, undo: string, body: () => Promise<T>): Promise<T> {
    await db.sql(change)
    try {
      return await body()
    } finally {
      await db.sql(undo)
    }
  }
  const later = (breaking: boolean) =>
    `insert into rowlock.migration (number, name, hash, breaking, release) values (900, 'later', 'h', ${breaking}, '9.1.0')`
  const noLater = 'delete from rowlock.migration where number = 900'

  test('that is newer stops migrate: it is told which release to use', async () => {
    await changed(later(false), noLater, async () => {
      const error = await migrate(db.database).catch((error) => error)
      expect(error).toMatchObject({ code: 'SCHEMA_NEWER' })
      expect(error.message).toMatch(/900_later of release 9\.1\.0/)
    })
  })

  test('that is newer and breaks nothing lets this release’s workers start', async () => {
    await changed(later(false), noLater, startAndStop)
  })

  test('that is newer and breaks this one stops its workers at their start', async () => {
    await changed(later(true), noLater, async () => {
      expect(await codeOf(startAndStop())).toBe('SCHEMA_NEWER')
      expect(await messageOf(startAndStop())).toMatch(/release 9\.1\.0 .*upgrade this process/)
    })
  })

  test('that is older is SCHEMA_OUTDATED for workers, until somebody migrates', async () => {
    const last = MIGRATIONS.at(-1)!
    await changed(
      `create table kept as select * from rowlock.migration where number = ${last.number}; delete from rowlock.migration where number = ${last.number}`,
      'insert into rowlock.migration select * from kept; drop table kept',
      async () => {
        expect(await codeOf(startAndStop())).toBe('SCHEMA_OUTDATED')
        expect(await messageOf(startAndStop())).toMatch(/lacks migration .*rowlock migrate/)
      },
    )
    await startAndStop()
  })

  test('that was edited after it was applied is MIGRATION_CHANGED', async () => {
    await changed(
      `update rowlock.migration set hash = 'x' || hash where number = 1`,
      `update rowlock.migration set hash = substr(hash, 2) where number = 1`,
      async () => expect(await codeOf(migrate(db.database))).toBe('MIGRATION_CHANGED'),
    )
  })

  test('that is newer keeps its functions when an older process migrates', async () => {
    const hash = await db.value(`select hash from rowlock.routine where name = 'store'`)
    const mark = (release: string) =>
      `update rowlock.routine set hash = 'another', release = '${release}' where name = 'store'`
    const undo = `update rowlock.routine set hash = '${hash}', release = '${RELEASE}' where name = 'store'`
    for (const newer of ['0.1.1', '0.10.0', '1.0.0', '10.0.0-beta.1']) {
      await changed(mark(newer), undo, async () => {
        expect([newer, (await migrate(db.database)).replaced]).toEqual([newer, []])
      })
    }
    for (const older of ['0.0.9', '0.1.0', '']) {
      await changed(mark(older), undo, async () => {
        expect([older, (await migrate(db.database)).replaced]).toEqual([older, ['store']])
      })
    }
  })

  test('a database without Rowlock is SCHEMA_MISSING for everything but migrate', async () => {
    const at = await ground('missing')
    const rowlock = at.client()
    for (const work of [
      () => rowlock.enqueue(note, 1),
      () => rowlock.enqueueMany(Array.from({ length: 1_500 }, () => note.with(1))),
      () => rowlock.cancel('1'),
      () => rowlock.job('1'),
      () => rowlock.pause('default'),
      () => rowlock.worker({ handlers: [handle(note, () => {})], listen: false, logger: silent }).start(),
    ]) {
      expect([String(work), await codeOf(work())]).toEqual([String(work), 'SCHEMA_MISSING'])
    }
    expect(await messageOf(rowlock.enqueue(note, 1))).toMatch(/run `rowlock migrate`/)
    await at.drop()
  })
})

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
          `select 'table' as what, c.relname::text as name, c.oid::integer from pg_class c where c.relnamespace = 'taken'::regnamespace
          union all select 'function', p.proname::text, p.oid::integer from pg_proc p where p.pronamespace = 'taken'::regnamespace
          union all select 'type', t.typname::text, t.oid::integer from pg_type t where t.typnamespace = 'taken'::regnamespace
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
    const reports = await Promise.all(Array.from({ length: 6 }, () => migrate(at.database(), { migrations })))
    expect(reports.flatMap(({ applied }) => applied)).toHaveLength(migrations.length)
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
      `set idle_in_transaction_session_timeout = '200ms'`,
      `set statement_timeout = '200ms'`,
    ])
    await at.admin(`create schema rowlock authorization ${new URL(url).username}`)
    await migrate(at.database({ url }))
    // A build waits for every transaction that has a snapshot.
    const old = new pg.Client({ connectionString: at.url })
    old.on('error', () => {})
    await old.connect()
    await old.query('begin isolation level repeatable read')
    await old.query('select 1')
    const building = () =>
      at.admin<{ pid: number; old: boolean }>(
        `select pid, clock_timestamp() - query_start > interval '500 ms' as old from pg_stat_activity
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
            and query ilike '%index concurrently%' and clock_timestamp() - query_start > interval '500 ms'`,
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

test('a table that somebody holds is waited for, in short turns that let others pass', async () => {
  const at = await ground('locks')
  await migrate(at.database())
  const adds: Migration = {
    number: 900,
    name: 'adds',
    hash: 'h',
    breaking: false,
    transaction: true,
    sql: 'alter table rowlock.waiting add column try integer;',
  }
  const holder = new pg.Client({ connectionString: at.url })
  holder.on('error', () => {})
  await holder.connect()
  await holder.query('begin; lock table rowlock.waiting in access share mode')
  const lines: string[] = []
  const work = migrate(at.database(), {
    migrations: [...MIGRATIONS, adds],
    onProgress: (line) => lines.push(line),
  })
  const rowlock = at.client()
  // While it queues for its lock everybody queues behind it; between two turns they get through.
  await until('it has given way once', () => lines.includes('waiting for a lock that somebody else holds'))
  await rowlock.enqueue(note, 1)
  await holder.query('commit')
  expect((await work).applied).toEqual(['0900_adds'])
  await holder.end()
  await at.drop()
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
        `select pg_get_function_identity_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result, proacl::text as acl
           from pg_proc p where p.pronamespace = 'rowlock'::regnamespace and p.proname = 'probe'`,
      )
    ).map(({ arguments: args, result, acl }) => [args, result, acl.includes('caller')])
  const sql = (args: string, result: string, body: string) =>
    `create or replace function rowlock.probe(${args}) returns ${result} language sql as $rowlock$ select ${body} $rowlock$;`

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

/** All that makes a schema what it is, in words that do not depend on its name. */
async function catalog(at: Ground, schema: string): Promise<unknown> {
  const rows = await at.admin(
    `with s as (select oid, nspname from pg_namespace where nspname = $1)
     select 'column ' || c.relname || '.' || a.attname as name,
            format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
              || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as is
       from s join pg_class c on c.relnamespace = s.oid join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      union all
     select 'table ' || c.relname, c.relkind::text || c.relispartition || coalesce(array_to_string(c.reloptions, ','), '')
              || coalesce(pg_get_expr(c.relpartbound, c.oid), '') || coalesce(replace(c.relacl::text, s.nspname, 'SCHEMA'), '')
       from s join pg_class c on c.relnamespace = s.oid
      union all
     select 'constraint ' || c.conrelid::regclass::text || c.conname, pg_get_constraintdef(c.oid)
       from s join pg_constraint c on c.connamespace = s.oid
      union all
     select 'index ' || c.relname, pg_get_indexdef(c.oid)
       from s join pg_class c on c.relnamespace = s.oid where c.relkind in ('i', 'I')
      union all
     select 'view ' || c.relname, pg_get_viewdef(c.oid) from s join pg_class c on c.relnamespace = s.oid where c.relkind = 'v'
      union all
     select 'function ' || p.proname, pg_get_functiondef(p.oid) || coalesce(p.proacl::text, 'everybody')
       from s join pg_proc p on p.pronamespace = s.oid
      union all
     select 'type ' || t.typname, t.typtype::text from s join pg_type t on t.typnamespace = s.oid
      order by 1, 2`,
    [schema],
  )
  const quoted = quoteIdentifier(schema)
  const literal = quoted.replaceAll("'", "''")
  const neutral = (text: string) =>
    [`E'${literal.replaceAll('\\', '\\\\')}`, `'${literal}`, quoted, `${schema}.`]
      .reduce(
        (all, name) =>
          all.replaceAll(name, name.startsWith('E') || name.startsWith("'") ? "'SCHEMA" : 'SCHEMA'),
        text,
      )
      .replaceAll('SCHEMA.', 'SCHEMA')
      .replaceAll(/\$rowlock_*\$/g, '$rowlock$')
  const s = quoteIdentifier(schema)
  return {
    objects: rows.map(({ name, is }) => [neutral(name), neutral(is)]),
    migrations: await at.admin(`select number, name, hash, breaking, release from ${s}.migration order by 1`),
    routines: await at.admin(`select name, hash, release from ${s}.routine order by 1`),
    installations: await at.admin(`select count(*)::integer as n from ${s}.installation`),
  }
}

describe('the script', () => {
  const run = async (url: string, text: string) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(text).finally(() => client.end())
  }

  test.each(['rowlock', `it's "a" $rowlock$ \\ rowlock.b`])(
    'makes the same schema %s as migrate does',
    async (schema) => {
      const [by, with_] = [await ground('by script'), await ground('by migrate')]
      await run(by.url, migrationScript(schema))
      await migrate(with_.database({ schema }))
      const clean = (all: unknown) => JSON.parse(JSON.stringify(all).replaceAll(/owner_[a-z0-9_]+/g, 'OWNER'))
      const found = clean(await catalog(by, schema))
      expect(found.objects.length).toBeGreaterThan(200)
      expect(found).toEqual(clean(await catalog(with_, schema)))
      expect(await by.client({ schema }).migrate()).toEqual({ applied: [], replaced: [] })
      await life(by.client({ schema }))
      await by.drop()
      await with_.drop()
    },
  )

  test('is read by psql as it is meant, also where strings are of old', async () => {
    if (spawnSync('psql', ['--version']).error) return console.info('not run: psql is not installed')
    const at = await ground('psql')
    const schema = `it's "a" :b \\ $rowlock$`
    const url = await at.role('old', ['set standard_conforming_strings = off'])
    await at.admin(`create schema ${quoteIdentifier(schema)} authorization ${new URL(url).username}`)
    execFileSync('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', url], {
      input: migrationScript(schema),
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    await life(at.client({ url, schema }))
    await at.drop()
  })

  test('is undone as a whole when a part of it fails', async () => {
    const at = await ground('script fails')
    await at.sql('create schema rowlock; create table rowlock.finished ()')
    await expect(run(at.url, migrationScript('rowlock'))).rejects.toMatchObject({ code: '42P07' })
    expect(
      await at.sql(`select relname::text as name from pg_class where relnamespace = 'rowlock'::regnamespace`),
    ).toEqual([{ name: 'finished' }])
    await at.drop()
  })
})

test('every function is replaced under the hands of workers and producers, and none of them notices', async () => {
  const at = await ground('live')
  const rowlock = at.client()
  await rowlock.migrate()
  const warnings: unknown[] = []
  const hear = (fields: object, message: string) => void warnings.push([message, fields])
  const seen = new Set<unknown>()
  const worker = rowlock.worker({
    handlers: [handle(note, ({ input }) => void seen.add(input))],
    poll: 50,
    logger: { ...silent, warn: hear, error: hear },
  })
  await worker.start()
  let enqueued = 0
  let isDone = false
  const producer = async () => {
    while (!isDone) {
      await rowlock.enqueue(note, enqueued++, { dedupeKey: `k${enqueued % 7}` })
      await rowlock.enqueueMany([note.with(enqueued++), note.with(enqueued++)])
    }
  }
  const producing = Promise.all([producer(), producer()])
  for (let round = 0; round < 5; round++) {
    const routines = ROUTINES.map((routine) => ({ ...routine, hash: `round ${round}` }))
    const reports = await Promise.all([1, 2].map(() => migrate(at.database(), { routines })))
    expect(reports.flatMap(({ replaced }) => replaced)).toHaveLength(ROUTINES.length)
  }
  isDone = true
  await producing
  const live = 'select from rowlock.waiting union all select from rowlock.running'
  await until('all is done', async () => (await at.sql(live)).length === 0)
  await worker.stop()
  expect(warnings).toEqual([])
  expect(seen.size).toBeGreaterThan(20)
  await at.drop()
})

test('all tables can be published for logical replication: jobs live on, and only history, which never changes, has no key', async () => {
  const at = await ground('published')
  await migrate(at.database())
  await at.admin('create publication everything for all tables')
  const rowlock = at.client()
  await rowlock.setQueue('default', { retentionDays: 1 })
  await life(rowlock)
  expect(
    await at.sql(
      `select c.relname::text as name from pg_class c
        where c.relnamespace = 'rowlock'::regnamespace and c.relkind in ('r', 'p')
          and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
          and c.relname !~ '^(finished|attempt)'`,
    ),
  ).toEqual([])
  await at.drop()
})

test('a copy by pg_dump works, and migrates, under its own database', async () => {
  const [from, to] = [await ground('dumped'), await ground('restored')]
  const [{ server }] = (await from.sql(
    `select current_setting('server_version_num')::integer / 10000 as server`,
  )) as [{ server: number }]
  const version = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' })
  const major = Number(/(\d+)\.\d+/.exec(version.stdout ?? '')?.[1] ?? 0)
  if (major < server) {
    console.info(`not run: pg_dump is ${major || 'not installed'}, the server is ${server}`)
  } else {
    const rowlock = from.client()
    await rowlock.migrate()
    const { id } = await rowlock.enqueue(note, { kept: true }, { delay: '1h', dedupeKey: 'k' })
    const dump = execFileSync('pg_dump', ['--no-owner', from.url], {
      encoding: 'utf8',
      maxBuffer: 100_000_000,
    })
    execFileSync('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', to.url], {
      input: dump,
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    const copy = to.client()
    expect(await copy.migrate()).toEqual({ applied: [], replaced: [] })
    expect(await copy.job(id)).toMatchObject({ input: { kept: true }, state: 'queued' })
    expect(await copy.enqueue(note, 1, { dedupeKey: 'k' })).toEqual({ id, created: false })
    await life(copy)
    expect(await to.sql(`select id > ${id} as rises, created from rowlock.enqueue('note')`)).toEqual([
      { rises: true, created: true },
    ])
  }
  await from.drop()
  await to.drop()
})
