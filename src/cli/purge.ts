// `rowlock purge`: delete ended jobs from history before their time.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function purgeCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'purge',
    name: 'purge',
    summary: 'delete ended jobs from history, for good',
    description:
      'Delete done, failed and cancelled jobs from history for good, with their attempts, inputs and results; ' +
      'what was done to them stays in `rowlock changes`. Dead letters are discarded first. ' +
      'History is dropped by itself, see `rowlock queue --retention-days`: this is for what must not be kept.',
    examples: `  rowlock purge 4711 --reason 'personal data'
  rowlock purge --tenant-id 42 --dry-run
  rowlock purge --metadata '{"customer":"4711"}' --reason 'erasure request'`,
    many: (rowlock, ids, by) => rowlock.purgeMany(ids, by),
  })
}
