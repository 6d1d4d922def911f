// Runs a migration that no transaction may hold: `create index concurrently`, mended when it was left invalid.

import type { Database } from './database.ts'
import type { Migration } from './migration.ts'
import { RELEASE } from './release.ts'
import { quoteIdentifier, renderSql } from './schema.ts'

/** Statements that no transaction may hold (`create index concurrently`), one by one; each can be run again. */
export async function runOutside(database: Database, migration: Migration): Promise<void> {
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
