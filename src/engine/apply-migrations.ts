// One step of a migration, inside one transaction: what is missing is applied, what changed is replaced, what is there
// is read back.

import { RowlockError } from '../ground/errors.ts'
import type { Migration, Routine } from './migration.ts'
import { bookkeeping } from './migration-script.ts'
import { isNewer, RELEASE } from './release.ts'
import { replaceRoutine } from './replace-routine.ts'
import { withinTransaction } from './run-outside.ts'
import { quoteIdentifier, renderSql } from './schema.ts'
import type { PooledClient } from './seam.ts'

/** What one step did. */
export interface Step {
  readonly applied: string[]
  readonly replaced: string[]
  /** A migration that must now run outside a transaction; afterwards the next step goes on. */
  readonly outside?: Migration
}

/** What a release brings. */
export interface Plan {
  readonly migrations: readonly Migration[]
  readonly routines: readonly Routine[]
}

/** As its file is called. */
export const label = ({ number, name }: Migration): string => `${String(number).padStart(4, '0')}_${name}`

/** Errors: SCHEMA_NEWER, MIGRATION_CHANGED, MIGRATION_FAILED. */
export async function applyMigrations(client: PooledClient, schema: string, plan: Plan): Promise<Step> {
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
        `There is no schema ${quoteIdentifier(schema)}, and this role may not create one. As an owner of the ` +
          `database: create schema ${quoteIdentifier(schema)} authorization <this role>`,
      )
    }
    await client.query(`create schema ${quoteIdentifier(schema)}`)
  }
  if (!there.known) await client.query(bookkeeping(schema))

  const known = await readKnown(client, schema)
  checkKnown(known, plan)
  const isNew = known.migrations.size === 0
  const applied: string[] = []
  for (const migration of plan.migrations) {
    if (known.migrations.has(migration.number)) continue
    if (!migration.transaction && !isNew) return { applied, replaced: [], outside: migration }
    await client.query(renderSql(withinTransaction(migration), schema))
    await client.query(
      `insert into ${s}migration (number, name, hash, breaking, release) values ($1, $2, $3, $4, $5)`,
      [migration.number, migration.name, migration.hash, migration.breaking, RELEASE],
    )
    applied.push(label(migration))
  }

  const replaced: string[] = []
  for (const routine of plan.routines) {
    const there = known.routines.get(routine.name)
    // A newer release's functions take this release's calls; put back, they would fail its workers.
    if (there !== undefined && (there.hash === routine.hash || isNewer(there.release, RELEASE))) continue
    await replaceRoutine(client, schema, routine, there !== undefined)
    replaced.push(routine.name)
  }
  if (plan.routines.some(({ name }) => name === 'make_days')) await client.query(`select ${s}make_days()`)
  await verify(client, schema, plan)
  return { applied, replaced }
}

interface KnownMigration {
  readonly name: string
  readonly hash: string
  readonly breaking: boolean
  readonly release: string
}

interface Known {
  readonly migrations: Map<number, KnownMigration>
  readonly routines: Map<string, KnownRoutine>
}

interface KnownRoutine {
  readonly name: string
  readonly hash: string
  readonly release: string
}

async function readKnown(client: PooledClient, schema: string): Promise<Known> {
  const s = `${quoteIdentifier(schema)}.`
  const migrations = await client.query(`select number, name, hash, breaking, release from ${s}migration`)
  const routines = await client.query(`select name, hash, release from ${s}routine`)
  return {
    migrations: new Map(
      (migrations.rows as (KnownMigration & { number: number })[]).map((row) => [row.number, row]),
    ),
    routines: new Map((routines.rows as KnownRoutine[]).map((row) => [row.name, row])),
  }
}

function checkKnown(known: Known, plan: Plan): void {
  const ours = new Map(plan.migrations.map((migration) => [migration.number, migration]))
  for (const [number, { hash, name, breaking, release }] of known.migrations) {
    const mine = ours.get(number)
    if (mine === undefined) {
      // Processes of this release that migrate at their start go on while the next one is rolled out.
      if (!breaking) continue
      throw new RowlockError(
        'SCHEMA_NEWER',
        `The schema has migration ${number}_${name} of release ${release}, which this release (${RELEASE}) ` +
          'cannot work with: upgrade this process to that release.',
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
