// `rowlock prioritize`: change the priority of waiting jobs.

import { Argument, type Command } from 'commander'
import { LIMITS } from '../ground/limits.ts'
import { changeCommand } from './change.ts'
import type { Shell } from './shell.ts'
import { wholeNumber } from './values.ts'

export function prioritizeCommand(shell: Shell): Command {
  const { min, max } = LIMITS.priority
  return changeCommand(shell, {
    verb: 'prioritize',
    name: 'prioritize',
    summary: 'change the priority of waiting jobs',
    description: `Change the priority of waiting jobs, from ${min} to ${max}; higher runs first.`,
    first: new Argument('<priority>', `${min} to ${max}, higher first`).argParser(wholeNumber(min, max)),
    examples: `  rowlock prioritize 5 4711
  rowlock prioritize 10 --kind invoice --reason 'end of the month'
  rowlock prioritize -5 --kind newsletter`,
    many: (rowlock, ids, by, priority) => rowlock.prioritizeMany(ids, priority, by),
  })
}
