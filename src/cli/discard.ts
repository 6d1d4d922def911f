// `rowlock discard`: give dead letters up.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function discardCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'discard',
    name: 'discard',
    summary: 'give dead letters up',
    description: 'Give dead letters up: they move to history as cancelled, reason `discarded`.',
    examples: `  rowlock discard 4711 --reason 'a test'
  rowlock discard --queue mail --ended-until 30d --dry-run
  rowlock discard --queue mail --ended-until 30d --yes`,
    many: (rowlock, ids, by) => rowlock.discardMany(ids, by),
  })
}
