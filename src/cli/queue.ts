// `rowlock queue`: one queue, and its settings.

import { Command, InvalidArgumentError, Option } from 'commander'
import { WHEN_FULL } from '../engine/queue-settings.ts'
import { describeMs } from '../ground/duration.ts'
import { LIMITS, RETENTION_CLASSES_DAYS } from '../ground/limits.ts'
import type { QueueRow, QueueSettings, Rate } from '../index.ts'
import { count, instant, span } from './amounts.ts'
import { UsageError } from './exit.ts'
import { mindUnknownQueue } from './known-names.ts'
import { lengthMs } from './length.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import type { Shell } from './shell.ts'
import { fields } from './table.ts'
import { length, wholeNumber, withWords, word } from './values.ts'
import { visible } from './visible.ts'

interface Options extends OperatorOptions {
  readonly retentionDays?: QueueSettings['retentionDays']
  readonly targetWait?: number
  readonly yes?: boolean
  readonly concurrency?: number | 'none'
  readonly maxRunning?: number | 'none'
  readonly rate?: Omit<Rate, 'burst'> | 'none'
  readonly burst?: number
  readonly maxWaiting?: number | 'none'
  readonly whenFull?: (typeof WHEN_FULL)[number]
}

export function queueCommand(shell: Shell): Command {
  return withOperator(
    new Command('queue')
      .summary('show a queue, or change its settings')
      .description('Show a queue; with one of the settings, change it. Workers follow within seconds.')
      .argument('<queue>', 'its name')
      .addOption(
        withWords(
          new Option(
            '--retention-days <days>',
            `how long history is kept: ${RETENTION_CLASSES_DAYS.join(', ')} days`,
          ),
          RETENTION_CLASSES_DAYS,
          retention,
        ),
      )
      .addOption(
        new Option('--target-wait <length>', 'a due job should start within this, as 30s').argParser(length),
      )
      .addOption(
        new Option(
          '--concurrency <n>',
          "handlers of this queue that each worker runs at once; none: the worker's own setting",
        ).argParser(orNone(LIMITS.concurrency)),
      )
      .addOption(
        new Option('--max-running <n>', 'jobs that run at once, over all workers; or none').argParser(
          orNone(LIMITS.maxRunning),
        ),
      )
      .addOption(
        new Option('--rate <rate>', 'how many start in a time, as 100/s or 20/5min; or none').argParser(rate),
      )
      .addOption(
        new Option('--burst <n>', 'with --rate: how many may start at once after a pause').argParser(
          wholeNumber(LIMITS.rateBurst.min, LIMITS.rateBurst.max),
        ),
      )
      .addOption(
        new Option('--max-waiting <n>', 'about how many jobs may wait; or none').argParser(
          orNone(LIMITS.maxWaiting),
        ),
      )
      .addOption(
        withWords(
          new Option('--when-full <what>', `what becomes of jobs above that: ${WHEN_FULL.join(' or ')}`),
          WHEN_FULL,
          (text) => word(text, WHEN_FULL),
        ),
      ),
  )
    .option('--yes', 'change it also where no queue of that name is known, and one is near it')
    .addHelpText(
      'after',
      `
Examples:
  rowlock queue mail
  rowlock queue mail --target-wait 30s --retention-days 30
  rowlock queue mail --concurrency 2 --reason 'the API is slow'
  rowlock queue mail --concurrency none
  rowlock queue erp --max-running 3
  rowlock queue erp --rate 100/s --burst 10
  rowlock queue erp --max-running none --rate none`,
    )
    .action(shell.run((queue: string, options: Options) => run(shell, queue, options)))
}

async function run(shell: Shell, queue: string, options: Options): Promise<void> {
  const settings = settingsOf(options)
  const rowlock = await shell.client()
  if (Object.keys(settings).length === 0 && (options.reason ?? options.actor) !== undefined) {
    const flag = options.reason !== undefined ? '--reason' : '--actor'
    throw new UsageError(`${flag} goes with a change: --retention-days, --concurrency or another setting`)
  }
  if (Object.keys(settings).length > 0) {
    await mindUnknownQueue(shell, queue, options.yes)
    await rowlock.setQueue(queue, settings, operatorOf(shell, options))
  }
  const row = await rowlock.queue(queue)
  if (shell.isJson) return shell.json(row)
  await shell.print(queuePage(shell, row).join('\n'))
}

function settingsOf({ retentionDays, targetWait, burst, ...options }: Options): QueueSettings {
  const { concurrency, maxRunning, rate, maxWaiting, whenFull } = options
  if (burst !== undefined && (rate === undefined || rate === 'none')) {
    throw new UsageError('--burst goes with --rate: how many may start at once, of so many in a time')
  }
  return {
    ...(retentionDays !== undefined && { retentionDays }),
    ...(targetWait !== undefined && { targetWait }),
    ...(concurrency !== undefined && { concurrency: nullOf(concurrency) }),
    ...(maxRunning !== undefined && { maxRunning: nullOf(maxRunning) }),
    ...(rate !== undefined && { rate: rate === 'none' ? null : { ...rate, burst } }),
    ...(maxWaiting !== undefined && { maxWaiting: nullOf(maxWaiting) }),
    ...(whenFull !== undefined && { whenFull }),
  }
}

function queuePage({ paint }: Shell, row: QueueRow): string[] {
  const who = [
    row.pausedBy === null ? '' : ` by ${row.pausedBy}`,
    row.pausedBecause === null ? '' : `: ${row.pausedBecause}`,
  ]
  const paused =
    row.pausedAt === null
      ? ''
      : paint('yellow', visible(`paused since ${instant(row.pausedAt)}${who.join('')}`))
  const wait =
    row.oldestDueAgeMs === null
      ? 'nothing is due'
      : `${span(row.oldestDueAgeMs)}${row.beyondTarget ? paint('red', ', beyond its target') : ''}`
  return [
    `${paint('bold', visible(row.queue))}  ${paused}`.trimEnd(),
    '',
    ...fields(
      [
        ['due', count(row.due, row.dueAbout)],
        ['oldest due', wait],
        ['scheduled', count(row.scheduled, row.scheduledAbout)],
        ['retryable', count(row.retryable, row.retryableAbout)],
        [
          'running',
          `${count(row.running)}${row.maxRunning === null ? '' : ` of at most ${count(row.maxRunning)}`}`,
        ],
        ['dead letters', count(row.deadLetters, row.deadLettersAbout)],
        ['last minute', `${count(row.donePerMinute)} done, ${count(row.failedPerMinute)} failed attempts`],
        ['workers', `${count(row.workers)} with ${count(row.slots)} slots`],
      ],
      paint,
    ),
    '',
    paint('bold', 'settings'),
    ...fields(
      [
        ['target wait', span(row.targetWaitMs)],
        ['retention', row.retentionDays === 0 ? 'none: ended jobs are not kept' : `${row.retentionDays}d`],
        ['concurrency', row.concurrency === null ? "the worker's own" : `${row.concurrency} on each worker`],
        ...limits(row),
      ],
      paint,
    ).map((line) => `  ${line}`),
  ]
}

function retention(text: string): number {
  const days = Number(text.replace(/d$/, ''))
  if (/^\d+d?$/.test(text) && (RETENTION_CLASSES_DAYS as readonly number[]).includes(days)) return days
  throw new InvalidArgumentError(`It must be one of ${RETENTION_CLASSES_DAYS.join(', ')} days.`)
}

/** Those that are set. */
function limits({ maxRunning, rate, nextStartAt, maxWaiting, whenFull }: QueueRow): [string, string][] {
  const next = nextStartAt === null ? '' : `; the next at ${instant(nextStartAt)}`
  const rows: [string, string | undefined][] = [
    ['max running', maxRunning === null ? undefined : `${count(maxRunning)} over all workers`],
    ['rate', rate === null ? undefined : `${said(rate)}, burst ${count(rate.burst)}${next}`],
    ['max waiting', maxWaiting === null ? undefined : `about ${count(maxWaiting)}, then ${whenFull}`],
  ]
  return rows.filter((row): row is [string, string] => row[1] !== undefined)
}

/** As `--rate` takes it. */
const said = ({ starts, perMs }: NonNullable<QueueRow['rate']>): string =>
  `${starts}/${describeMs(perMs).replace(/^1(?=[a-z]+$)/, '')}`

const orNone =
  ({ min, max }: { readonly min: number; readonly max: number }) =>
  (text: string): number | 'none' =>
    text === 'none' ? 'none' : wholeNumber(min, max)(text) // commander takes null for a value that is missing

const nullOf = (value: number | 'none'): number | null => (value === 'none' ? null : value)

function rate(text: string): Omit<Rate, 'burst'> | 'none' {
  if (text === 'none') return 'none'
  const [, starts = '', n = '', unit = ''] = /^(\d+) ?\/ ?([\d.]*) ?([a-z]+)$/i.exec(text) ?? []
  const per = lengthMs(`${n === '' ? '1' : n}${unit}`)
  if (per === undefined) {
    throw new InvalidArgumentError("It must be starts in a time, such as '100/s', '20/5min' or '1000/day'.")
  }
  return { starts: Number(starts), per }
}
