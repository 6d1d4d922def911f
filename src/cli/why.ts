// `rowlock why`: why does this job wait, or what became of it?

import { Argument, Command } from 'commander'
import type { Reason } from '../index.ts'
import type { Shell } from './shell.ts'
import { id } from './values.ts'
import { visible, wrap } from './visible.ts'

export function whyCommand(shell: Shell): Command {
  return new Command('why')
    .summary('say why a job waits, or what became of it')
    .description(
      'Say why a job waits, or what became of it: every reason, the most important first, and what to do.',
    )
    .addArgument(new Argument('<id>', 'the id of the job').argParser(id))
    .addHelpText(
      'after',
      `
Examples:
  rowlock why 4711
  rowlock why 4711 --json | jq -r .reason`,
    )
    .action(shell.run((job: string) => run(shell, job)))
}

async function run(shell: Shell, job: string): Promise<void> {
  const reasons = await shell.client().why(job)
  if (shell.isJson) return shell.ndjson(reasons)
  await shell.print(reasonLines(shell, reasons).join('\n'))
}

/** Each reason as its word and the sentence that says it; the first stands out. */
function reasonLines(shell: Shell, reasons: readonly Reason[]): string[] {
  return reasons.flatMap(({ reason, says }, n) => {
    const [first = '', ...rest] = wrap(`${reason}: ${visible(says)}`, shell.width - 2)
    const word = shell.paint(n === 0 ? ['bold', 'yellow'] : 'yellow', reason)
    return [word + first.slice(reason.length), ...rest.map((line) => `  ${line}`)]
  })
}
