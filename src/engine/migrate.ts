// Brings a schema to this release: migrations in order, then every function and view whose text changed.
// Safe when ten processes start at once; needs no superuser and no extension.

import { RowlockError } from '../ground/errors.ts'
import { applyMigrations, label } from './apply-migrations.ts'
import type { Database } from './database.ts'
import type { Migration, Routine } from './migration.ts'
import { takeTurn } from './migration-turn.ts'
import { runOutside } from './run-outside.ts'
import { quoteIdentifier } from './schema.ts'

import { MIGRATIONS, ROUTINES } from './sql.generated.ts'
import { isConnectionError } from './translate.ts'

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
          takeTurn(client, database.schema, async () => {
            await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
            return applyMigrations(client, database.schema, plan)
          }),
        )
        for (const name of step.applied) options.onProgress?.(`applied ${name}`)
        applied.push(...step.applied)
        if (step.outside === undefined) return { applied, replaced: step.replaced }
        if (!(await runOutside(database, step.outside))) continue
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

function failed(error: unknown, schema: string): unknown {
  if (error instanceof RowlockError) return error
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (isConnectionError(error)) {
    return new RowlockError(
      'DATABASE_UNAVAILABLE',
      `The connection was lost during the migration (${String(message)}). Run it again: it goes on where it stopped.`,
      { cause: error },
    )
  }
  if (typeof code !== 'string') return error
  const hint =
    code === '42501'
      ? ` This role needs CREATE on the schema ${quoteIdentifier(schema)} and must own what is in it.`
      : /^42(P07|710|723|P01|703|809)$/.test(code)
        ? ' An object of that name is there already and is not of Rowlock: give Rowlock a schema of its own.'
        : ''
  return new RowlockError('MIGRATION_FAILED', `The migration failed: ${String(message)}.${hint}`, {
    cause: error,
  })
}
