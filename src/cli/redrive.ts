// `rowlock redrive`: put dead letters back in their queue.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function redriveCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'redrive',
    name: 'redrive',
    summary: 'put dead letters back in their queue',
    description:
      'Put dead letters back in their queue: the same jobs, their failures forgotten. ' +
      '`rowlock dead-letters` groups them.',
    examples: `  rowlock redrive 4711
  rowlock redrive --queue mail --cause timeout --reason 'the server is back'
  rowlock redrive --kind invoice --error 'Error: card refused #'`,
    many: (rowlock, ids, by) => rowlock.redriveMany(ids, by),
  })
}
