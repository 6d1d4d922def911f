// `rowlock migrate`: bring the schema to this release, or print what that takes.

import { Command } from 'commander'
import { migrate } from '../engine/migrate.ts'
import { migrationScript } from '../engine/migration-script.ts'
import { checkSchema } from '../engine/schema.ts'
import { connect } from './connect.ts'

interface Options {
  readonly url?: string
  readonly schema: string
  readonly sql?: boolean
}

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('Install Rowlock in a database, or bring it to this release. Safe when several run at once.')
    .option('--url <url>', 'the database; default: DATABASE_URL')
    .option('--schema <name>', 'the schema Rowlock lives in', 'rowlock')
    .option('--sql', 'print the SQL of a new installation instead, for psql or for review')
    .addHelpText(
      'after',
      `
Examples:
  rowlock migrate
  rowlock migrate --url postgres://app@db/shop --schema jobs
  rowlock migrate --sql > rowlock.sql

The role needs CREATE on the database, or on the schema if that exists. No superuser, no extension.`,
    )
    .action(run)
}

async function run({ url, schema, sql }: Options): Promise<void> {
  checkSchema(schema)
  if (sql === true) {
    process.stdout.write(migrationScript(schema))
    return
  }
  const database = connect(url, schema)
  try {
    const { applied, replaced } = await migrate(database, {
      onProgress: (line) => process.stderr.write(`${line}\n`),
    })
    const changes = [
      ...(applied.length > 0
        ? [`${applied.length} migration${applied.length === 1 ? '' : 's'} applied`]
        : []),
      ...(replaced.length > 0 ? [`${replaced.length} functions replaced`] : []),
    ]
    process.stdout.write(
      `${changes.length > 0 ? changes.join(', ') : 'nothing to do'}: the schema is up to date\n`,
    )
  } finally {
    await database.close()
  }
}
