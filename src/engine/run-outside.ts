// Runs a migration that no transaction may hold: `create index concurrently`, mended when it was left invalid. Where
// nothing is there yet, it is run in the transaction that makes everything.

import type { Database } from './database.ts'
import { buildDaysIndex, readDaysIndex } from './index-days.ts'
import type { Migration } from './migration.ts'
import { takeTurn } from './migration-turn.ts'
import { RELEASE } from './release.ts'
import { quoteIdentifier, renderSql } from './schema.ts'
import type { PooledClient } from './seam.ts'

/** Statements that no transaction may hold, one by one; each can be run again. Answers whether this call ran them. */
export async function runOutside(database: Database, migration: Migration): Promise<boolean> {
  const s = `${quoteIdentifier(database.schema)}.`
  return database.use((client) =>
    // While this transaction is open nobody else migrates. It sits idle as long as the build takes, without a snapshot.
    takeTurn(client, database.schema, async () => {
      const { rows } = await client.query(`select from ${s}migration where number = ${migration.number}`)
      if (rows.length > 0) return false
      const second = database.lane(1, 'rowlock migrate')
      try {
        await second.use((other) => build(other, database.schema, migration))
      } finally {
        if (second !== database) await second.close()
      }
      await client.query(
        `insert into ${s}migration (number, name, hash, breaking, release) values ($1, $2, $3, $4, $5)`,
        [migration.number, migration.name, migration.hash, migration.breaking, RELEASE],
      )
      return true
    }),
  )
}

async function build(client: PooledClient, schema: string, migration: Migration): Promise<void> {
  const { rows } = await client.query("select current_setting('statement_timeout') as limit")
  const isLimited = (rows[0] as { limit: string }).limit !== '0'
  // Outside a transaction there is no `set local`. A session without a limit is left alone: it may be a pooler's.
  if (isLimited) await client.query('set statement_timeout = 0')
  try {
    await dropInvalid(client, schema, migration)
    for (const statement of statements(migration.sql)) {
      const index = await readDaysIndex(client, schema, statement)
      if (index === undefined) await client.query(renderSql(statement, schema))
      else await buildDaysIndex(client, schema, index)
    }
  } finally {
    if (isLimited) await client.query('reset statement_timeout').catch(() => {})
  }
}

/** An index whose concurrent build was interrupted is there and of no use: it is built anew. */
async function dropInvalid(client: PooledClient, schema: string, migration: Migration): Promise<void> {
  const { rows } = await client.query(
    `select c.relname as name, format('drop index concurrently if exists %I.%I', n.nspname, c.relname) as drop
       from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and not i.indisvalid and c.relkind = 'i'`,
    [schema],
  )
  // Another's index may be in the making just now.
  for (const { name, drop } of rows as { name: string; drop: string }[]) {
    if (migration.sql.includes(name)) await client.query(drop)
  }
}

/** As it is run where the tables are new, and nobody writes to them. */
export const withinTransaction = ({ sql, transaction }: Migration): string =>
  transaction ? sql : sql.replaceAll('create index concurrently', 'create index')

/** Such a file has one statement a paragraph, and no function bodies. */
const statements = (sql: string): string[] =>
  sql
    .replace(/^--.*$/gm, '')
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== '')
