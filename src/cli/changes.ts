// `rowlock changes`: who changed what, when and why.

import { Command, Option } from 'commander'
import type { ChangeRow } from '../index.ts'
import { instant } from './amounts.ts'
import type { Exit } from './exit.ts'
import type { Shell } from './shell.ts'
import { type Column, table } from './table.ts'
import { id, when, wholeNumber } from './values.ts'

interface Options {
  readonly limit: number
  readonly before?: string
  readonly job?: string
  readonly queue?: string
  readonly verb?: string
  readonly actor?: string
  readonly since?: Date
  readonly until?: Date
}

export function changesCommand(shell: Shell): Command {
  return new Command('changes')
    .summary('show who changed what, when and why')
    .description('Show what operators changed, newest first: who, when, what and why.')
    .addOption(new Option('--job <id>', 'of this job').argParser(id))
    .option('--queue <name>', 'of this queue')
    .option('--verb <verb>', 'only this one, as cancel or run_now')
    .option('--actor <name>', 'by this one')
    .addOption(
      new Option('--since <when>', 'at or after: an instant in ISO form, or an age such as 2h').argParser(
        when,
      ),
    )
    .addOption(new Option('--until <when>', 'before').argParser(when))
    .option('--limit <n>', 'how many at most', wholeNumber(1, 1_000), 50)
    .option('--before <id>', 'the next page', id)
    .addHelpText(
      'after',
      `
Examples:
  rowlock changes --since 1h
  rowlock changes --queue mail --verb pause
  rowlock changes --job 4711
  rowlock changes --actor ada --json`,
    )
    .action(shell.run((options: Options) => run(shell, options)))
}

async function run(shell: Shell, { limit, before, job, ...filter }: Options): Promise<Exit> {
  const rowlock = shell.client()
  const wanted = { ...filter, ...(job !== undefined && { jobId: job }) }
  const rows: ChangeRow[] = []
  let next: string | null | undefined = before
  const isInterrupted = await shell.interruptible(async (signal) => {
    while (next !== null && rows.length < limit && !signal.aborted) {
      const page = await rowlock.changes(wanted, {
        limit: limit - rows.length,
        ...(next !== undefined && { before: next }),
      })
      rows.push(...page.changes)
      next = page.next
    }
    return signal.aborted && next !== null
  }, false)
  if (shell.isJson) await shell.ndjson(rows)
  else if (rows.length > 0) await shell.print(table(rows, COLUMNS, shell).join('\n'))
  else shell.say('no change matches')
  if (next !== null && next !== undefined) shell.say(`older ones: ${shell.againWith('--before', next)}`)
  return isInterrupted ? 'interrupted' : 'done'
}

const COLUMNS: readonly Column<ChangeRow>[] = [
  { head: 'AT', of: ({ at }) => instant(at) },
  { head: 'WHAT', of: ({ verb }) => verb, style: () => 'bold' },
  { head: 'JOB', of: ({ jobId }) => jobId ?? '', isNumber: true, isOptional: true },
  { head: 'QUEUE', of: ({ queue }) => queue ?? '', isOptional: true, min: 8, weight: 2 },
  { head: 'BY', of: ({ actor }) => actor ?? '–', min: 8, weight: 3 },
  { head: 'WHY', of: ({ reason }) => reason ?? '', isOptional: true, min: 10 },
  { head: 'DETAIL', of: ({ detail }) => detailOf(detail), isOptional: true, min: 10, weight: 1 },
]

const detailOf = (detail: unknown): string =>
  Object.entries((detail ?? {}) as object)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
