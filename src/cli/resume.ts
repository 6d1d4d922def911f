// `rowlock resume`: let a paused queue be claimed again.

import { Command } from 'commander'
import { mindUnknownQueue } from './known-names.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import type { Shell } from './shell.ts'

interface Options extends OperatorOptions {
  readonly yes?: boolean
}

export function resumeCommand(shell: Shell): Command {
  return withOperator(
    new Command('resume')
      .summary('let a paused queue be claimed again')
      .description('Let a paused queue be claimed again. A bulk change goes on with `rowlock bulk resume`.')
      .argument('<queue>', 'its name'),
  )
    .option('--yes', 'also where no queue of that name is known, and one is near it')
    .addHelpText(
      'after',
      `
Examples:
  rowlock resume mail
  rowlock resume mail --reason 'the mail server is back' --actor ada`,
    )
    .action(shell.run((queue: string, options: Options) => run(shell, queue, options)))
}

async function run(shell: Shell, queue: string, options: Options): Promise<void> {
  await mindUnknownQueue(shell, queue, options.yes)
  const changed = await (await shell.client()).resume(queue, operatorOf(shell, options))
  if (shell.isJson) return shell.json({ queue, paused: false, changed })
  await shell.print(changed ? `${queue} is claimed again` : `${queue} was not paused`)
}
