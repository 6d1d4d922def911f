// `rowlock pause`: stop claims of a queue.

import { Command } from 'commander'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import { warnOfUnknownQueue } from './queue-names.ts'
import type { Shell } from './shell.ts'

export function pauseCommand(shell: Shell): Command {
  return withOperator(
    new Command('pause')
      .summary('stop claims of a queue')
      .description('Stop claims of a queue: what runs goes on, what waits stays. Enqueues go on.')
      .argument('<queue>', 'its name'),
  )
    .addHelpText(
      'after',
      `
Examples:
  rowlock pause mail --reason 'the mail server is down'
  rowlock queues`,
    )
    .action(shell.run((queue: string, options: OperatorOptions) => run(shell, queue, options)))
}

async function run(shell: Shell, queue: string, options: OperatorOptions): Promise<void> {
  await warnOfUnknownQueue(shell, queue)
  const changed = await shell.client().pause(queue, operatorOf(shell, options))
  if (shell.isJson) return shell.json({ queue, paused: true, changed })
  await shell.print(changed ? `${queue} is paused` : `${queue} was paused already`)
}
