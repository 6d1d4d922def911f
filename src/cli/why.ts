// `rowlock why`: why does this job wait, or what became of it?

import { Argument, Command } from 'commander'
import type { Reason } from '../index.ts'
import type { Shell } from './shell.ts'
import { id } from './values.ts'
import { visible, widthOf, wrap } from './visible.ts'

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
  const reasons = await (await shell.client()).why(job)
  if (shell.isJson) return shell.ndjson(reasons)
  await shell.print(reasonLines(shell, reasons).join('\n'))
}

/** What can be typed, and what it would do. */
const COMMAND = /^(rowlock [a-z-]+ (?:\S+)|select pg_\w+\([^)]*\);?)[,.:]?\s*(.*)$/s
const BEFORE_COMMAND = /(?:[.;:,] | \(|^)(?=rowlock [a-z-]+ \S|select pg_\w+\()/

/** Each reason as its word and the sentence that says it; the first stands out. Commands have lines of their own. */
function reasonLines(shell: Shell, reasons: readonly Reason[]): string[] {
  return reasons.flatMap(({ reason, says }, n) => {
    const [said = '', ...commands] = `${reason}: ${visible(says)}`.split(BEFORE_COMMAND)
    const [first = '', ...rest] = wrap(said, shell.width - 2)
    const word = shell.paint(n === 0 ? ['bold', 'yellow'] : 'yellow', reason)
    return [
      word + first.slice(reason.length),
      ...rest.map((line) => `  ${line}`),
      ...commands.flatMap((each) => commandLines(shell, each)),
    ]
  })
}

/** A command as it is typed, alone on its line if what it does finds no room behind it, as a comment. */
function commandLines({ width, paint }: Shell, text: string): string[] {
  const [, command = text, does = ''] = COMMAND.exec(text) ?? []
  const typed = `    ${command}`
  if (does === '') return [typed]
  const comment = `${command.startsWith('select') ? '--' : '#'} ${does}`
  if (typed.length + 2 + widthOf(comment) <= width) return [`${typed}  ${paint('gray', comment)}`]
  return [typed, ...wrap(does, width - 6).map((line) => `      ${paint('gray', line)}`)]
}
