// `rowlock dead-letters`: what has failed for good, grouped by why, with what to type about each group.

import { Command } from 'commander'
import type { DeadLetterGroup } from '../index.ts'
import { count, span } from './amounts.ts'
import { FILTER_FLAGS, filterOf, flagsOf, withFilter } from './filters.ts'
import { sayNearest } from './known-names.ts'
import { commandLine, type Shell } from './shell.ts'
import { type Column, layout } from './table.ts'
import { wholeNumber } from './values.ts'
import { cut, visible } from './visible.ts'

const FITTING = [
  'queue',
  'kind',
  'tenant-id',
  'cause',
  'error',
  'metadata',
  'enqueued-since',
  'enqueued-until',
  'ended-since',
  'ended-until',
] as const

interface Options extends Record<string, unknown> {
  readonly limit: number
}

export function deadLettersCommand(shell: Shell): Command {
  return withFilter(
    new Command('dead-letters')
      .summary('group dead letters by cause and error')
      .description(
        'Group dead letters by queue, kind, cause and error, the largest group first, ' +
          'with the command that redrives it.',
      )
      .option('--limit <n>', 'how many groups at most', wholeNumber(1, 1_000), 20),
    FILTER_FLAGS.filter((flag) => !(FITTING as readonly string[]).includes(flag)),
  )
    .addHelpText(
      'after',
      `
Examples:
  rowlock dead-letters
  rowlock dead-letters --queue mail --ended-since 2h
  rowlock dead-letters --json | jq '{error, jobs}'`,
    )
    .action(shell.run((options: Options) => run(shell, options)))
}

async function run(shell: Shell, options: Options): Promise<void> {
  const filter = filterOf(options)
  const groups = await (await shell.client()).deadLetters(filter, { limit: options.limit })
  if (shell.isJson) return shell.ndjson(groups)
  if (groups.length === 0) {
    shell.say('no dead letter')
    return sayNearest(shell, filter)
  }
  const shown = layout(groups, columns(new Date()), shell)
  const lines = groups.flatMap((group, n) => {
    const redrive = commandLine('redrive', ...flagsOf({ ...filter, ...narrow(group) }))
    const error = cut(visible(group.error ?? 'no error'), shell.width - 4)
    return [
      n === 0 ? shown.head : '',
      ...shown.lines([group]),
      `    ${shell.paint('red', error)}`,
      `    ${shell.paint('gray', `→ ${visible(redrive)}`)}`,
    ]
  })
  await shell.print(lines.join('\n'))
}

/** The filter that finds exactly this group. */
function narrow({ queue, kind, cause, error }: DeadLetterGroup) {
  return { queue, kind, ...(cause !== null && { cause }), ...(error !== null && { error }) }
}

const columns = (now: Date): readonly Column<DeadLetterGroup>[] => [
  { head: 'JOBS', of: (row) => count(row.jobs, row.about), isNumber: true, style: () => 'bold' },
  { head: 'QUEUE', of: (row) => row.queue, min: 8 },
  { head: 'KIND', of: (row) => row.kind, min: 10 },
  { head: 'CAUSE', of: (row) => row.cause ?? '', min: 8 },
  { head: 'LAST', of: (row) => `${span(Math.max(0, now.getTime() - row.lastAt.getTime()))} ago` },
  {
    head: 'FIRST',
    of: (row) => `${span(Math.max(0, now.getTime() - row.firstAt.getTime()))} ago`,
    weight: 1,
  },
  { head: 'ONE OF THEM', of: (row) => row.sampleId, isNumber: true, weight: 2 },
]
