// Who does it and why: two options of every command that changes something.

import type { Command } from 'commander'
import type { Operator } from '../index.ts'
import type { Shell } from './shell.ts'

export interface OperatorOptions {
  readonly actor?: string
  readonly reason?: string
}

export function withOperator(command: Command): Command {
  return command
    .option('--reason <text>', 'why; kept with the change, see `rowlock changes`')
    .option('--actor <name>', 'who does it (default: ROWLOCK_ACTOR, else user@host)')
}

export function operatorOf(shell: Shell, { actor, reason }: OperatorOptions): Operator {
  return { actor: actor ?? (shell.io.env.ROWLOCK_ACTOR || shell.io.user), reason }
}
