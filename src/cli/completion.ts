// `rowlock completion`: a script for bash, zsh or fish, made from the command tree. It asks nobody but for the names of
// queues, and those only for a moment.

import { Argument, Command } from 'commander'
import { SHELLS, script } from './completion-script.ts'
import { nodesOf } from './completion-tree.ts'
import { queueNames } from './known-names.ts'
import type { Shell } from './shell.ts'
import { withWords, word } from './values.ts'

/** `queues` is for the scripts themselves. */
const SHELLS_AND_QUEUES = [...SHELLS, 'queues'] as const
const PATIENCE_MS = 1_500

export function completionCommand(shell: Shell): Command {
  const command = new Command('completion')
    .summary('print a script that completes commands, options and queues')
    .description(
      'Print a script that completes commands, options, states and, when the database is near, queues.',
    )
    .addArgument(
      withWords(new Argument('<shell>', SHELLS.join(', ')), SHELLS, (text) => word(text, SHELLS_AND_QUEUES)),
    )
    .addHelpText(
      'after',
      `
Examples:
  eval "$(rowlock completion bash)"   # in ~/.bashrc
  eval "$(rowlock completion zsh)"    # in ~/.zshrc, after compinit
  rowlock completion fish > ~/.config/fish/completions/rowlock.fish`,
    )
  return command.action(
    shell.run(async (which: (typeof SHELLS_AND_QUEUES)[number]) => {
      if (which === 'queues') return printQueues(shell)
      await shell.print(script(which, nodesOf(command.parent!)))
    }),
  )
}

/** What the scripts call. Whatever goes wrong, a completion says nothing. */
async function printQueues(shell: Shell): Promise<void> {
  const late = new Promise<string[]>((resolve) => {
    setTimeout(() => resolve([]), PATIENCE_MS).unref()
  })
  let names: string[]
  try {
    names = await Promise.race([queueNames(shell), late])
  } catch {
    return
  }
  const plain = names.filter((name) => /^[\w.:@/-]+$/.test(name))
  if (plain.length > 0) await shell.print(plain.join('\n'))
}
