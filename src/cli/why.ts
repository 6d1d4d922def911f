// `rowlock why`: why does this job wait, or where did it go?

import { Argument, Command } from 'commander'
import type { Reason } from '../index.ts'
import { span } from './amounts.ts'
import { nextStep } from './next-step.ts'
import type { Shell } from './shell.ts'
import { id } from './values.ts'
import { visible, wrap } from './visible.ts'

export function whyCommand(shell: Shell): Command {
  return new Command('why')
    .summary('say why a job waits, or what became of it')
    .description(
      'Say why a job waits, or what became of it: every reason, the most important first, and what to type.',
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
  await shell.print(reasonLines(shell, job, reasons, new Date()).join('\n'))
}

/** Each reason as a line that says it, then since when, and what can be done. */
export function reasonLines(shell: Shell, job: string, reasons: readonly Reason[], now: Date): string[] {
  return reasons.flatMap((reason, n) => {
    const { says, since, until } = reason
    const time = [
      ...(since === null ? [] : [`since ${span(Math.max(0, now.getTime() - since.getTime()))}`]),
      ...(until === null
        ? []
        : [until > now ? `for another ${span(until.getTime() - now.getTime())}` : 'over by now']),
    ]
    const head = `${reason.reason}: ${visible(says)}${time.length > 0 ? ` (${time.join(', ')})` : ''}`
    const lines = wrap(head, shell.width - 2)
    const [word = ''] = lines[0]!.split(':')
    const style = n === 0 ? (['bold', 'yellow'] as const) : ('yellow' as const)
    const painted =
      shell.paint(typeof style === 'string' ? style : [...style], word) + lines[0]!.slice(word.length)
    const step = nextStep(job, reason)
    return [
      painted,
      ...lines.slice(1).map((line) => `  ${line}`),
      ...(step === undefined ? [] : [`  ${shell.paint('gray', `→ ${step}`)}`]),
    ]
  })
}
