// The exit codes of every command, as one table that the help and the docs are made from.

import { wrap } from './visible.ts'

/** One row per exit code: its number, when, and what to do next. */
export const EXITS = {
  done: { code: 0, when: 'Done.', next: 'Nothing.' },
  failed: { code: 1, when: 'It failed, for a reason that no other code stands for.', next: 'Read stderr.' },
  usage: {
    code: 2,
    when: 'A command, option or value is wrong, or `--yes` is missing where nobody can be asked. Nothing was changed.',
    next: 'Type what stderr proposes.',
  },
  notFound: {
    code: 3,
    when: 'There is no such job, queue or bulk change.',
    next: 'Check the id or name; history may have been dropped.',
  },
  partly: {
    code: 4,
    when: 'Some or all jobs were not changed: not found, in a state the verb does not apply to, changed meanwhile.',
    next: 'Read the answers: they say which and why. The other jobs were changed.',
  },
  unreachable: {
    code: 5,
    when: 'The database cannot be reached, does not let this user in, or the connection was lost.',
    next: 'Check the address, the server, the user and what is between.',
  },
  interrupted: {
    code: 130,
    when: 'Interrupted by Ctrl-C or SIGTERM, or its question not answered with yes. What was done is said and stays.',
    next: 'Nothing, or go on with the command that stderr names.',
  },
} as const satisfies Record<string, { readonly code: number; readonly when: string; readonly next: string }>

/** How a command ended. */
export type Exit = keyof typeof EXITS

/** A call that is wrong, found by the command line itself: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The table as the help shows it. */
export function exitCodes(width: number): string {
  const rows = Object.values(EXITS).map(({ code, when }) => {
    const lines = wrap(when.replaceAll('`', ''), width - 7)
    return `  ${String(code).padEnd(5)}${lines.join(`\n${' '.repeat(7)}`)}`
  })
  return `Exit codes:\n${rows.join('\n')}`
}
