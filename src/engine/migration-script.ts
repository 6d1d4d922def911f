// The SQL of an installation as one text: for those whose database is changed by other hands; and what migrate begins
// with.

import { RELEASE } from './release.ts'
import { revokeFromPublic } from './replace-routine.ts'
import { withinTransaction } from './run-outside.ts'
import { dollarQuote, quoteIdentifier, quoteLiteral, renderSql } from './schema.ts'
import { MIGRATIONS, ROUTINES } from './sql.generated.ts'

/** The tables that know what was applied. */
export const bookkeeping = (schema: string): string =>
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
  const quote = dollarQuote(schema)
  const lines = [
    `-- Rowlock ${RELEASE}: a new installation in the schema ${quoteIdentifier(schema)}.`,
    'begin;',
    'set local search_path = pg_catalog, pg_temp;',
    'set local check_function_bodies = off;',
    'set local standard_conforming_strings = on;',
    // `if not exists` would ask for CREATE on the database even when an owner has made the schema.
    `do ${quote} begin`,
    `  if to_regnamespace(${quoteLiteral(quoteIdentifier(schema))}) is null then`,
    `    create schema ${quoteIdentifier(schema)};`,
    '  end if;',
    `end ${quote};`,
    bookkeeping(schema),
  ]
  for (const migration of MIGRATIONS) {
    lines.push(renderSql(withinTransaction(migration), schema))
    const values = [migration.name, migration.hash].map(quoteLiteral).join(', ')
    lines.push(
      `insert into ${s}migration (number, name, hash, breaking, release)`,
      `values (${migration.number}, ${values}, ${migration.breaking}, ${quoteLiteral(RELEASE)});`,
    )
  }
  for (const routine of ROUTINES) {
    lines.push(renderSql(routine.sql, schema), revokeFromPublic(schema, routine))
    lines.push(
      `insert into ${s}routine (name, hash, release)`,
      `values (${[routine.name, routine.hash, RELEASE].map(quoteLiteral).join(', ')});`,
    )
  }
  lines.push(`select ${s}make_days();`, 'commit;', '')
  return lines.join('\n')
}
