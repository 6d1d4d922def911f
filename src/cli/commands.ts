// Every command there is, in the order of the help. A command is a file that makes a `Command` for a shell; it is
// added here and nowhere else.

import type { Command } from 'commander'
import { bulkCommand } from './bulk.ts'
import { cancelCommand } from './cancel.ts'
import { changesCommand } from './changes.ts'
import { completionCommand } from './completion.ts'
import { deadLettersCommand } from './dead-letters.ts'
import { devCommand } from './dev.ts'
import { discardCommand } from './discard.ts'
import { enqueueCommand } from './enqueue.ts'
import { jobCommand } from './job.ts'
import { jobsCommand } from './jobs.ts'
import { migrateCommand } from './migrate.ts'
import { pauseCommand } from './pause.ts'
import { prioritizeCommand } from './prioritize.ts'
import { purgeCommand } from './purge.ts'
import { queueCommand } from './queue.ts'
import { queuesCommand } from './queues.ts'
import { redriveCommand } from './redrive.ts'
import { resumeCommand } from './resume.ts'
import { retryCommand } from './retry.ts'
import { runNowCommand } from './run-now.ts'
import type { Shell } from './shell.ts'
import { whyCommand } from './why.ts'
import { workCommand } from './work.ts'
import { workersCommand } from './workers.ts'

/** A heading of the help, and what stands below it. */
export interface CommandGroup {
  readonly heading: string
  readonly commands: readonly ((shell: Shell) => Command)[]
}

export const COMMANDS: readonly CommandGroup[] = [
  { heading: 'Set up and run:', commands: [devCommand, migrateCommand, workCommand, enqueueCommand] },
  {
    heading: 'Look:',
    commands: [
      jobsCommand,
      jobCommand,
      whyCommand,
      queuesCommand,
      queueCommand,
      workersCommand,
      deadLettersCommand,
      changesCommand,
      bulkCommand,
    ],
  },
  {
    heading: 'Change jobs:',
    commands: [
      cancelCommand,
      retryCommand,
      runNowCommand,
      prioritizeCommand,
      redriveCommand,
      discardCommand,
      purgeCommand,
    ],
  },
  { heading: 'Change queues:', commands: [pauseCommand, resumeCommand] },
  { heading: 'Shell:', commands: [completionCommand] },
]
