// `rowlock cancel`: ask for jobs to be stopped for good.

import type { Command } from 'commander'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'

export function cancelCommand(shell: Shell): Command {
  return changeCommand(shell, {
    verb: 'cancel',
    name: 'cancel',
    summary: 'stop jobs that wait or run, for good',
    description:
      'Stop jobs for good: what waits ends at once, what runs is asked to stop and ends when its handler does.',
    examples: `  rowlock cancel 4711 --reason 'the order was withdrawn'
  rowlock cancel --queue mail --kind newsletter
  rowlock cancel --tenant-id 42 --state scheduled --dry-run`,
    many: (rowlock, ids, by) => rowlock.cancelMany(ids, by),
  })
}
