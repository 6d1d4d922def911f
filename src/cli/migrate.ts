// `rowlock migrate`: bring the schema to this release, or print what that takes.

import { Command } from 'commander'
import { checkSchema } from '../engine/schema.ts'
import type { Shell } from './shell.ts'

export function migrateCommand(shell: Shell): Command {
  return new Command('migrate')
    .summary('install Rowlock in a database, or bring it to this release')
    .description('Install Rowlock in a database, or bring it to this release. Safe when several run at once.')
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
    .action(shell.run((options: { readonly sql?: boolean }) => run(shell, options)))
}

async function run(shell: Shell, { sql }: { readonly sql?: boolean }): Promise<void> {
  checkSchema(shell.schema)
  if (sql === true) {
    const { migrationScript } = await import('../engine/migration-script.ts')
    return shell.print(migrationScript(shell.schema))
  }
  const [{ migrate }, { databaseOf }] = await Promise.all([
    import('../engine/migrate.ts'),
    import('../rowlock.ts'),
  ])
  const report = await migrate(databaseOf(await shell.client()), { onProgress: (line) => shell.say(line) })
  if (shell.isJson) return shell.json(report)
  const { applied, replaced } = report
  const changes = [
    ...(applied.length > 0 ? [`${applied.length} migration${applied.length === 1 ? '' : 's'} applied`] : []),
    ...(replaced.length > 0 ? [`${replaced.length} functions replaced`] : []),
  ]
  await shell.print(`${changes.length > 0 ? changes.join(', ') : 'nothing to do'}: the schema is up to date`)
}
