#!/usr/bin/env node
// The front door: `rowlock <command>`. Exit codes: 0 done, 1 it failed, 2 the arguments are wrong.

import { Command, CommanderError } from 'commander'
import { RELEASE } from '../engine/release.ts'
import { isRowlockError } from '../ground/errors.ts'
import { migrateCommand } from './migrate.ts'

export const EXIT = { done: 0, failed: 1, usage: 2 } as const

/** Run the command line; answers the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const program = new Command('rowlock')
    .description('A durable job queue in the PostgreSQL you already have.')
    .version(RELEASE)
    .showSuggestionAfterError()
    .showHelpAfterError('(see: rowlock --help)')
    .exitOverride()
    .addCommand(migrateCommand())
  // Each command ends by throwing, not by ending the process.
  for (const command of program.commands) command.exitOverride().showSuggestionAfterError()
  try {
    await program.parseAsync(args, { from: 'user' })
    return EXIT.done
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
    process.stderr.write(`rowlock: ${describe(error)}\n`)
    return isRowlockError(error, 'INVALID_OPTION') ? EXIT.usage : EXIT.failed
  }
}

function describe(error: unknown): string {
  if (isRowlockError(error, 'DATABASE_UNAVAILABLE')) {
    const next =
      'Check the address (--url or DATABASE_URL), that the server runs, and that it lets this user in.'
    return `${error.message}\n  ${next}`
  }
  if (isRowlockError(error)) return `${error.message} [${error.code}]`
  return error instanceof Error ? error.message : String(error)
}

// A closed pipe (`| head`) is no fault of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done)
})
// That nobody hears of the progress is no reason to stop in the middle.
process.stderr.on('error', () => {})

process.exitCode = await main(process.argv.slice(2))
