// `rowlock run-now`: make waiting jobs due at once.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function runNowCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'run_now',
    name: 'run-now',
    summary: 'make scheduled and retryable jobs due at once',
    description:
      'Make scheduled and retryable jobs due at once. What waits before them in their line stays before them.',
    examples: `  rowlock run-now 4711
  rowlock run-now --state retryable --cause timeout --reason 'the API is back'
  rowlock jobs --state scheduled --json | rowlock run-now - --yes`,
    many: (rowlock, ids, by) => rowlock.runNowMany(ids, by),
  })
}
