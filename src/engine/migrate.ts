// Brings a schema to this release: migrations in order, then every function and view whose text changed.
// Safe when ten processes start at once; needs no superuser and no extension.

import { RowlockError } from '../ground/errors.ts'
import type { Database } from './database.ts'
import type { Migration, Routine } from './migration.ts'
import { RELEASE } from './release.ts'
import { quoteIdentifier, quoteLiteral, renderSql } from './schema.ts'
import type { PooledClient } from './seam.ts'
import { MIGRATIONS, ROUTINES } from './sql.generated.ts'

/** What a migration did. */
export interface MigrateReport {
  /** Names of the migrations that were applied now. */
  readonly applied: readonly string[]
  /** Names of the functions and views that were replaced now. */
  readonly replaced: readonly string[]
}

/** For tests: other steps than those of this release. */
export interface MigrateOptions {
  readonly migrations?: readonly Migration[]
  readonly routines?: readonly Routine[]
  readonly onProgress?: (line: string) => void
}

/** A step waits this long for a lock before it lets others pass and tries again. */
const LOCK_TIMEOUT = '2s'
const TRIES = 60
const BUSY = new Set(['55P03', '40P01'])

/**
 * Apply what is missing. Each run ends with the schema as this release wants it, or changes nothing more.
 *
 * Transaction: own; holds an advisory lock for as long as it takes.
 * Errors: SCHEMA_NEWER, MIGRATION_CHANGED, MIGRATION_FAILED, DATABASE_UNAVAILABLE.
 */
export async function migrate(database: Database, options: MigrateOptions = {}): Promise<MigrateReport> {
  const plan = { migrations: options.migrations ?? MIGRATIONS, routines: options.routines ?? ROUTINES }
  const applied: string[] = []
  for (let tries = 1; ; tries++) {
    try {
      for (;;) {
        const step = await database.use((client) =>
          locked(client, database.schema, () => advance(client, database.schema, plan)),
        )
        for (const name of step.applied) options.onProgress?.(`applied ${name}`)
        applied.push(...step.applied)
        if (step.outside === undefined) return { applied, replaced: step.replaced }
        await runOutside(database, step.outside)
        applied.push(label(step.outside))
        options.onProgress?.(`applied ${label(step.outside)}`)
      }
    } catch (error) {
      const code = (error as { code?: unknown }).code
      if (!BUSY.has(String(code)) || tries >= TRIES) throw failed(error, database.schema)
      options.onProgress?.('waiting for a lock that somebody else holds')
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 100 * Math.min(tries, 20)))
    }
  }
}

interface Step {
  readonly applied: string[]
  readonly replaced: string[]
  /** A migration that must now run outside a transaction; afterwards the next step goes on. */
  readonly outside?: Migration
}

interface Plan {
  readonly migrations: readonly Migration[]
  readonly routines: readonly Routine[]
}

const label = ({ number, name }: Migration) => `${String(number).padStart(4, '0')}_${name}`

/** One transaction at a time migrates a schema, also through a transaction pooler. */
async function locked<T>(client: PooledClient, schema: string, body: () => Promise<T>): Promise<T> {
  await client.query('begin isolation level read committed read write')
  try {
    await client.query('set local search_path = pg_catalog, pg_temp')
    await client.query('set local standard_conforming_strings = on')
    await client.query('set local lock_timeout = 0')
    await client.query('set local statement_timeout = 0')
    await client.query('set local idle_in_transaction_session_timeout = 0')
    await client.query('set local check_function_bodies = off')
    await client.query('set local client_min_messages = warning')
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`rowlock migrate ${schema}`])
    await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
    const value = await body()
    await client.query('commit')
    return value
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function advance(client: PooledClient, schema: string, plan: Plan): Promise<Step> {
  const s = `${quoteIdentifier(schema)}.`
  const { rows: found } = await client.query(
    `select to_regnamespace($1) is not null as exists,
            to_regclass($2) is not null as known,
            has_database_privilege(current_database(), 'create') as may_create`,
    [quoteIdentifier(schema), `${s}migration`],
  )
  const there = found[0] as { exists: boolean; known: boolean; may_create: boolean }
  if (!there.exists) {
    if (!there.may_create) {
      throw new RowlockError(
        'MIGRATION_FAILED',
        `There is no schema ${quoteIdentifier(schema)}, and this role may not create one. As an owner of the database: ` +
          `create schema ${quoteIdentifier(schema)} authorization <this role>`,
      )
    }
    await client.query(`create schema ${quoteIdentifier(schema)}`)
  }
  if (!there.known) await client.query(bookkeeping(schema))

  const known = await readKnown(client, schema)
  checkKnown(known, plan)
  const applied: string[] = []
  for (const migration of plan.migrations) {
    if (known.migrations.has(migration.number)) continue
    if (!migration.transaction) return { applied, replaced: [], outside: migration }
    await client.query(renderSql(migration.sql, schema))
    await client.query(
      `insert into ${s}migration (number, name, hash, breaking, release) values ($1, $2, $3, $4, $5)`,
      [migration.number, migration.name, migration.hash, migration.breaking, RELEASE],
    )
    applied.push(label(migration))
  }

  const replaced: string[] = []
  for (const routine of plan.routines) {
    if (known.routines.get(routine.name) === routine.hash) continue
    await replaceRoutine(client, schema, routine)
    replaced.push(routine.name)
  }
  if (plan.routines.some(({ name }) => name === 'make_days')) await client.query(`select ${s}make_days()`)
  await verify(client, schema, plan)
  return { applied, replaced }
}

/** One signature per function: a version with other arguments goes first, in the same transaction. */
async function replaceRoutine(client: PooledClient, schema: string, routine: Routine): Promise<void> {
  const s = `${quoteIdentifier(schema)}.`
  const others = `
    select format('drop function %I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as drop
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = $1 and p.proname = $2`
  const { rows: before } = await client.query(others, [schema, routine.name])
  const wanted = renderSql(routine.sql, schema)
  if (before.length === 0) {
    await client.query(wanted)
  } else {
    await client.query('savepoint routine')
    try {
      await client.query(wanted)
      const { rows: after } = await client.query(others, [schema, routine.name])
      if (after.length > 1) for (const row of before) await client.query((row as { drop: string }).drop)
    } catch (error) {
      if ((error as { code?: unknown }).code !== '42P13') throw error
      // Another return type cannot be put in place of the old one.
      await client.query('rollback to savepoint routine')
      for (const row of before) await client.query((row as { drop: string }).drop)
      await client.query(wanted)
    }
    await client.query('release savepoint routine')
  }
  await client.query(
    `insert into ${s}routine (name, hash, release) values ($1, $2, $3)
         on conflict (name) do update set hash = excluded.hash, release = excluded.release, replaced_at = clock_timestamp()`,
    [routine.name, routine.hash, RELEASE],
  )
}

/** Statements that no transaction may hold (`create index concurrently`), one by one; each can be run again. */
async function runOutside(database: Database, migration: Migration): Promise<void> {
  const s = `${quoteIdentifier(database.schema)}.`
  await database.use(async (client) => {
    // While this transaction is open nobody else migrates; it holds no snapshot, so an index build does not wait for it.
    await client.query('begin isolation level read committed')
    try {
      await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `rowlock migrate ${database.schema}`,
      ])
      const { rows } = await client.query(`select from ${s}migration where number = $1`, [migration.number])
      if (rows.length > 0) return
      const second = database.lane(1, 'rowlock migrate')
      try {
        await dropInvalid(second, database.schema)
        for (const statement of statements(renderSql(migration.sql, database.schema))) {
          await second.use((other) => other.query(statement))
        }
      } finally {
        if (second !== database) await second.close()
      }
      await client.query(
        `insert into ${s}migration (number, name, hash, breaking, release) values ($1, $2, $3, $4, $5)`,
        [migration.number, migration.name, migration.hash, migration.breaking, RELEASE],
      )
      await client.query('commit')
    } finally {
      await client.query('rollback').catch(() => {})
    }
  })
}

/** An index whose concurrent build was interrupted is there and of no use: it is built anew. */
async function dropInvalid(database: Database, schema: string): Promise<void> {
  await database.use(async (client) => {
    const { rows } = await client.query(
      `select format('drop index concurrently if exists %I.%I', n.nspname, c.relname) as drop
         from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and not i.indisvalid and c.relkind = 'i'`,
      [schema],
    )
    for (const row of rows) await client.query((row as { drop: string }).drop)
  })
}

/** Such a file has one statement a paragraph, and no function bodies. */
const statements = (sql: string): string[] =>
  sql
    .replace(/^--.*$/gm, '')
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== '')

interface Known {
  readonly migrations: Map<number, { hash: string; breaking: boolean; name: string; release: string }>
  readonly routines: Map<string, string>
}

async function readKnown(client: PooledClient, schema: string): Promise<Known> {
  const s = `${quoteIdentifier(schema)}.`
  const migrations = await client.query(`select number, name, hash, breaking, release from ${s}migration`)
  const routines = await client.query(`select name, hash from ${s}routine`)
  return {
    migrations: new Map((migrations.rows as any[]).map((row) => [row.number, row])),
    routines: new Map((routines.rows as any[]).map((row) => [row.name, row.hash])),
  }
}

function checkKnown(known: Known, plan: Plan): void {
  const ours = new Map(plan.migrations.map((migration) => [migration.number, migration]))
  for (const [number, { hash, name, release }] of known.migrations) {
    const mine = ours.get(number)
    if (mine === undefined) {
      throw new RowlockError(
        'SCHEMA_NEWER',
        `The schema has migration ${number}_${name} of release ${release}, which this release (${RELEASE}) does not know: ` +
          'migrate with that release or a newer one.',
      )
    }
    if (mine.hash !== hash) {
      throw new RowlockError(
        'MIGRATION_CHANGED',
        `Migration ${label(mine)} was applied in another form than the one this release ships.`,
      )
    }
  }
}

/** Success only after the catalogue has been read back. */
async function verify(client: PooledClient, schema: string, plan: Plan): Promise<void> {
  const { rows } = await client.query(
    `select coalesce(string_agg(r.name, ', '), '') as missing
       from unnest($2::text[]) as r (name)
      where not exists (
              select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
               where n.nspname = $1 and p.proname = r.name)
        and not exists (
              select from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = $1 and c.relname = r.name and c.relkind = 'v')`,
    [schema, plan.routines.map(({ name }) => name)],
  )
  const { missing } = rows[0] as { missing: string }
  if (missing !== '')
    throw new RowlockError('MIGRATION_FAILED', `After the migration these are missing: ${missing}.`)
}

function failed(error: unknown, schema: string): unknown {
  if (error instanceof RowlockError) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (typeof code !== 'string') return error
  const hint =
    code === '42501'
      ? ` This role needs CREATE on the schema ${quoteIdentifier(schema)} and must own what is in it.`
      : /^42(P07|710|723)$/.test(code)
        ? ' An object of that name is there already and is not of Rowlock: give Rowlock a schema of its own.'
        : ''
  return new RowlockError('MIGRATION_FAILED', `The migration failed: ${String(message)}.${hint}`, {
    cause: error,
  })
}

const bookkeeping = (schema: string): string =>
  renderSql(
    `create table rowlock.migration (
  number integer not null,
  name text not null,
  hash text not null,
  breaking boolean not null,
  release text not null,
  applied_at timestamptz not null default clock_timestamp(),
  constraint migration_pkey primary key (number)
);
create table rowlock.routine (
  name text not null,
  hash text not null,
  release text not null,
  replaced_at timestamptz not null default clock_timestamp(),
  constraint routine_pkey primary key (name)
);
`,
    schema,
  )

/**
 * The whole of an installation as a script for psql: for those whose database is changed by other hands.
 * It is for an empty schema; `migrate` brings an existing one up to date.
 */
export function migrationScript(schema: string): string {
  const s = `${quoteIdentifier(schema)}.`
  const lines = [
    `-- Rowlock ${RELEASE}: a new installation in the schema ${quoteIdentifier(schema)}.`,
    'begin;',
    'set local check_function_bodies = off;',
    'set local standard_conforming_strings = on;',
    `create schema if not exists ${quoteIdentifier(schema)};`,
    bookkeeping(schema),
  ]
  for (const migration of MIGRATIONS) {
    lines.push(renderSql(migration.sql, schema))
    const values = [migration.name, migration.hash].map(quoteLiteral).join(', ')
    lines.push(
      `insert into ${s}migration (number, name, hash, breaking, release) values (${migration.number}, ${values}, ${migration.breaking}, ${quoteLiteral(RELEASE)});`,
    )
  }
  for (const routine of ROUTINES) {
    lines.push(renderSql(routine.sql, schema))
    lines.push(
      `insert into ${s}routine (name, hash, release) values (${[routine.name, routine.hash, RELEASE].map(quoteLiteral).join(', ')});`,
    )
  }
  lines.push(`select ${s}make_days();`, 'commit;', '')
  return lines.join('\n')
}
