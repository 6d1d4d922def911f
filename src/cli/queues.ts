// `rowlock queues`: every queue with what waits, runs and fails in it.

import { Command } from 'commander'
import type { QueueRow } from '../index.ts'
import { count, span } from './amounts.ts'
import type { Shell } from './shell.ts'
import { type Column, table } from './table.ts'
import { wholeNumber } from './values.ts'

interface Options {
  readonly limit: number
  readonly after?: string
}

export function queuesCommand(shell: Shell): Command {
  return new Command('queues')
    .summary('list queues with what waits, runs and fails')
    .description(
      'List queues by name, those first that are late. OLDEST is how long the oldest due job has waited, ' +
        'marked with ! when that is beyond TARGET; rates are of the last minute.',
    )
    .option('--limit <n>', 'how many at most', wholeNumber(1, 1_000), 100)
    .option('--after <name>', 'only queues whose name comes after this one: the next page')
    .addHelpText(
      'after',
      "\nExamples:\n  rowlock queues\n  rowlock queues --json | jq -r 'select(.beyondTarget).queue'",
    )
    .action(shell.run((options: Options) => run(shell, options)))
}

async function run(shell: Shell, { limit, after }: Options): Promise<void> {
  const rows = await (await shell.client()).queues({ limit, ...(after !== undefined && { after }) })
  if (shell.isJson) return shell.ndjson(rows)
  if (rows.length === 0) return shell.say('no queue has jobs, workers or settings')
  // The list of a page is by name, and so is where the next one begins; what is late comes first all the same.
  const late = rows.filter(isLate)
  const sorted = [...late, ...rows.filter((row) => !isLate(row))]
  await shell.print(table(sorted, COLUMNS, shell).join('\n'))
  if (rows.length === limit) shell.say(`more: ${shell.againWith('--after', rows.at(-1)!.queue)}`)
}

const isLate = (row: QueueRow): boolean => row.beyondTarget

/** Nothing is a dot: what there is stands out. */
const some = (n: number, about = false): string => (n === 0 && !about ? '·' : count(n, about))

const COLUMNS: readonly Column<QueueRow>[] = [
  { head: 'QUEUE', of: (row) => row.queue, min: 12 },
  { head: '', of: (row) => (row.pausedAt === null ? '' : 'paused'), isOptional: true, style: () => 'yellow' },
  { head: 'DUE', of: (row) => some(row.due, row.dueAbout), isNumber: true },
  {
    head: 'OLDEST',
    of: (row) => (row.oldestDueAgeMs === null ? '' : `${span(row.oldestDueAgeMs)}${isLate(row) ? '!' : ''}`),
    isNumber: true,
    style: (row) => (row.beyondTarget ? ['bold', 'red'] : undefined),
  },
  { head: 'TARGET', of: (row) => span(row.targetWaitMs), isNumber: true, weight: 8 },
  { head: 'RUNNING', of: (row) => some(row.running), isNumber: true },
  { head: 'SCHEDULED', of: (row) => some(row.scheduled, row.scheduledAbout), isNumber: true, weight: 4 },
  { head: 'RETRYABLE', of: (row) => some(row.retryable, row.retryableAbout), isNumber: true, weight: 5 },
  {
    head: 'DEAD',
    of: (row) => some(row.deadLetters, row.deadLettersAbout),
    isNumber: true,
    style: (row) => (row.deadLetters > 0 ? 'red' : undefined),
  },
  { head: 'DONE/MIN', of: (row) => some(row.donePerMinute), isNumber: true, weight: 6 },
  { head: 'FAILED/MIN', of: (row) => some(row.failedPerMinute), isNumber: true, weight: 3 },
  {
    head: 'WORKERS',
    of: (row) => some(row.workers),
    isNumber: true,
    weight: 7,
    style: (row) => (row.workers === 0 && row.due > 0 ? 'red' : undefined),
  },
  { head: 'SLOTS', of: (row) => some(row.slots), isNumber: true, weight: 1 },
]
