// Every command there is, in the order of the help. A command is a file that makes a `Command` for a shell; it is
// added here and nowhere else.

import type { Command } from 'commander'
import { devCommand } from './dev.ts'
import { enqueueCommand } from './enqueue.ts'
import { migrateCommand } from './migrate.ts'
import type { Shell } from './shell.ts'

/** A heading of the help, and what stands below it. */
export interface CommandGroup {
  readonly heading: string
  readonly commands: readonly ((shell: Shell) => Command)[]
}

export const COMMANDS: readonly CommandGroup[] = [
  { heading: 'Set up and run:', commands: [devCommand, migrateCommand, enqueueCommand] },
  { heading: 'Look:', commands: [] },
  { heading: 'Change jobs:', commands: [] },
  { heading: 'Change queues:', commands: [] },
  { heading: 'Shell:', commands: [] },
]
