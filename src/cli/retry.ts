// `rowlock retry`: run ended jobs again, as new jobs.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function retryCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'retry',
    name: 'retry',
    summary: 'run ended jobs again, as new jobs',
    description:
      'Run done, failed or cancelled jobs again: each as a new job with the same input and settings, ' +
      'whose id is told. ' +
      'For dead letters see `rowlock redrive`.',
    examples: `  rowlock retry 4711
  rowlock retry --state failed --kind invoice --ended-since 2h
  rowlock retry --state cancelled --queue mail --reason 'cancelled by mistake'`,
    many: (rowlock, ids, by) => rowlock.retryMany(ids, by),
  })
}
