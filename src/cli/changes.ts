// `rowlock changes`: who changed what, when and why.

import { Command, Option } from 'commander'
import { BULK_VERBS, type BulkVerb } from '../ground/states.ts'
import type { ChangeRow, JobFilter } from '../index.ts'
import { instant, jobs } from './amounts.ts'
import type { Exit } from './exit.ts'
import { filterLine } from './filters.ts'
import { inOrder } from './key-order.ts'
import { sayNearest } from './known-names.ts'
import type { Shell } from './shell.ts'
import { below, type Column, layout } from './table.ts'
import { id, when, wholeNumber, withWords, word } from './values.ts'

/** What the audit calls what was done. */
const VERBS = [...BULK_VERBS, 'pause', 'resume', 'set_queue', 'bulk', 'stop_bulk'] as const

/** As it is typed, `run-now`, or as SQL has it. */
const verb = (text: string): string => word(text.replaceAll('-', '_'), VERBS)

interface Options {
  readonly limit: number
  readonly before?: string
  readonly jobId?: string
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
    .addOption(new Option('--job-id <id>', 'of this job').argParser(id))
    .option('--queue <name>', 'of this queue')
    .addOption(withWords(new Option('--verb <verb>', 'only this one, as cancel or pause'), VERBS, verb))
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
  rowlock changes --job-id 4711
  rowlock changes --actor ada --json`,
    )
    .action(shell.run((options: Options) => run(shell, options)))
}

async function run(shell: Shell, { limit, before, ...filter }: Options): Promise<Exit> {
  const rowlock = await shell.client()
  const rows: ChangeRow[] = []
  let next: string | null | undefined = before
  const isInterrupted = await shell.interruptible(async (signal) => {
    while (next !== null && rows.length < limit && !signal.aborted) {
      const page = await rowlock.changes(filter, {
        limit: limit - rows.length,
        ...(next !== undefined && { before: next }),
      })
      rows.push(...page.changes)
      next = page.next
    }
    return signal.aborted && next !== null
  }, false)
  if (shell.isJson) await shell.ndjson(rows.map((row) => inOrder(row, 'ChangeRow')))
  else if (rows.length > 0) await shell.print(linesOf(shell, rows).join('\n'))
  else {
    shell.say('no change matches')
    if (filter.queue !== undefined) await sayNearest(shell, { queue: filter.queue })
  }
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
]

/** Each change in a line; what more there is of it stands below. */
function linesOf(shell: Shell, rows: readonly ChangeRow[]): string[] {
  const shown = layout(rows, COLUMNS, shell)
  return [shown.head, ...rows.flatMap((row) => [...shown.lines([row]), ...below(shell, detailOf(row))])]
}

/** What a bulk change was to do, in flags; of others what the verb adds, in words. */
function detailOf({ verb, detail }: ChangeRow): string {
  const { filter, verb: changes, matched, about, id: bulk } = (detail ?? {}) as Detail
  if (verb === 'bulk' && changes !== undefined && filter !== undefined) {
    const which = filterLine(changes, inOptions(filter))
    return `bulk change ${bulk}: ${changes}, ${jobs(matched ?? 0, about)}: ${which}`
  }
  if (verb === 'stop_bulk') return `bulk change ${bulk}`
  return Object.entries((detail ?? {}) as object)
    .map(
      ([name, value]) =>
        `${name.replaceAll('_', ' ')} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    .join(', ')
}

/** A filter as SQL has it, with the names that options have. */
const inOptions = (filter: Readonly<Record<string, unknown>>): JobFilter =>
  Object.fromEntries(
    Object.entries(filter).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  )

interface Detail {
  readonly id?: string
  readonly verb?: BulkVerb
  readonly filter?: Readonly<Record<string, unknown>>
  readonly matched?: number
  readonly about?: boolean
}
