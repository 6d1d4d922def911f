// `rowlock pause`: stop claims of a queue.

import { Command } from 'commander'
import { mindUnknownQueue } from './known-names.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import type { Shell } from './shell.ts'

interface Options extends OperatorOptions {
  readonly yes?: boolean
}

export function pauseCommand(shell: Shell): Command {
  return withOperator(
    new Command('pause')
      .summary('stop claims of a queue')
      .description('Stop claims of a queue: what runs goes on, what waits stays. Enqueues go on.')
      .argument('<queue>', 'its name'),
  )
    .option('--yes', 'also where no queue of that name is known, and one is near it')
    .addHelpText(
      'after',
      `
Examples:
  rowlock pause mail --reason 'the mail server is down'
  rowlock queues`,
    )
    .action(shell.run((queue: string, options: Options) => run(shell, queue, options)))
}

async function run(shell: Shell, queue: string, options: Options): Promise<void> {
  await mindUnknownQueue(shell, queue, options.yes)
  const changed = await (await shell.client()).pause(queue, operatorOf(shell, options))
  if (shell.isJson) return shell.json({ queue, paused: true, changed })
  await shell.print(changed ? `${queue} is paused` : `${queue} was paused already`)
}
