// A database of a plain role, for tests of what needs rights: migrations, names, settings.

import pg from 'pg'
import { expect } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { quoteIdentifier } from '../../src/engine/schema.ts'
import { createRowlock, defineJob, handle, type Rowlock, type WorkerOptions } from '../../src/index.ts'
import { administer, createDatabase, isPooled, type TestDatabase } from './server.ts'
import { until } from './until.ts'

export const note = defineJob<unknown>('note')
export const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** A database whose owner is a plain role, and SQL in it as whoever is asked for. */
export interface Ground {
  readonly url: string
  /** The same past the pooler of the run, if there is one: for a transaction that stays open. */
  readonly direct: string
  sql<Row = any>(text: string, values?: unknown[]): Promise<Row[]>
  admin<Row = any>(text: string, values?: unknown[]): Promise<Row[]>
  /** The URL for another role, made with these attributes. Gone with the database. */
  role(name: string, settings?: readonly string[]): Promise<string>
  client(options?: { readonly url?: string; readonly schema?: string }): Rowlock
  database(options?: { readonly url?: string; readonly schema?: string }): Database
  drop(): Promise<void>
}

let made = 0
export async function ground(name: string, { owned = true } = {}): Promise<Ground> {
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
  const admin = open(db.direct)
  const urlOf = (role: string, way = db.url) => {
    const url = new URL(way)
    url.username = role
    url.password = 'plain'
    return url.href
  }
  const self: Ground = {
    url: urlOf(`owner_${suffix}`),
    direct: urlOf(`owner_${suffix}`, db.direct),
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
  const owner = open(self.direct)
  return self
}

/** The whole life of jobs: in, woken by LISTEN, done, one cancelled, all of it read back. */
export async function life(rowlock: Rowlock, options: Partial<WorkerOptions> = {}): Promise<void> {
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
    if (!isPooled()) await until('LISTEN is proven', () => isHeard)
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

/** The code of the error, or `no error`. */
export const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error) => error.code,
  )
/** What the error says, or `no error`. */
export const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error) => String(error.message),
  )

/** All that makes a schema what it is, in words that do not depend on its name. */
export async function catalog(at: Ground, schema: string): Promise<unknown> {
  const rows = await at.admin(
    `with s as (select oid, nspname from pg_namespace where nspname = $1)
     select 'column ' || c.relname || '.' || a.attname as name,
            format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
              || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as is
       from s join pg_class c on c.relnamespace = s.oid
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      union all
     select 'table ' || c.relname,
            c.relkind::text || c.relispartition || coalesce(array_to_string(c.reloptions, ','), '')
              || coalesce(pg_get_expr(c.relpartbound, c.oid), '')
              || coalesce(replace(c.relacl::text, s.nspname, 'SCHEMA'), '')
       from s join pg_class c on c.relnamespace = s.oid
      union all
     select 'constraint ' || c.conrelid::regclass::text || c.conname, pg_get_constraintdef(c.oid)
       from s join pg_constraint c on c.connamespace = s.oid
      union all
     select 'index ' || c.relname, pg_get_indexdef(c.oid)
       from s join pg_class c on c.relnamespace = s.oid where c.relkind in ('i', 'I')
      union all
     select 'view ' || c.relname, pg_get_viewdef(c.oid)
       from s join pg_class c on c.relnamespace = s.oid where c.relkind = 'v'
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
