// For each reason why a job waits: what one types next, if there is something to do.

import type { Reason } from '../index.ts'
import { commandLine } from './shell.ts'

export function nextStep(job: string, { reason, detail }: Reason): string | undefined {
  const { queue } = (detail ?? {}) as { queue?: unknown }
  switch (reason) {
    case 'scheduled':
    case 'retry_later':
      return commandLine('run-now', job)
    case 'paused':
      return typeof queue === 'string' ? commandLine('resume', queue) : 'rowlock resume <queue>'
    case 'no_worker':
      return 'rowlock work <module>, or see rowlock workers'
    case 'no_handler':
    case 'workers_full':
    case 'workers_draining':
      return 'rowlock workers'
    case 'behind':
      return commandLine('prioritize', '10', job)
    case 'overdue':
    case 'running':
      return commandLine('cancel', job)
    case 'ended':
      return commandLine('job', job)
    case 'dead_letter':
      return `${commandLine('job', job)} shows the error; then ${commandLine('redrive', job)}`
    default:
      return undefined
  }
}
