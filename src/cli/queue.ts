// `rowlock queue`: one queue, and its settings.

import { Command, InvalidArgumentError, Option } from 'commander'
import { LIMITS, RETENTION_CLASSES_DAYS } from '../ground/limits.ts'
import type { QueueRow, QueueSettings } from '../index.ts'
import { count, instant, span } from './amounts.ts'
import { UsageError } from './exit.ts'
import { mindUnknownQueue } from './known-names.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import type { Shell } from './shell.ts'
import { fields } from './table.ts'
import { length, wholeNumber, withWords } from './values.ts'
import { visible } from './visible.ts'

interface Options extends OperatorOptions {
  readonly retentionDays?: QueueSettings['retentionDays']
  readonly targetWait?: number
  readonly yes?: boolean
  readonly concurrency?: number | 'none'
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
        ).argParser(concurrency),
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
  rowlock queue mail --concurrency none`,
    )
    .action(shell.run((queue: string, options: Options) => run(shell, queue, options)))
}

async function run(shell: Shell, queue: string, options: Options): Promise<void> {
  const { retentionDays, targetWait, concurrency } = options
  const settings: QueueSettings = {
    ...(retentionDays !== undefined && { retentionDays }),
    ...(targetWait !== undefined && { targetWait }),
    ...(concurrency !== undefined && { concurrency: concurrency === 'none' ? null : concurrency }),
  }
  const rowlock = await shell.client()
  if (Object.keys(settings).length === 0 && (options.reason ?? options.actor) !== undefined) {
    const flag = options.reason !== undefined ? '--reason' : '--actor'
    throw new UsageError(`${flag} goes with a change: --retention-days, --target-wait or --concurrency`)
  }
  if (Object.keys(settings).length > 0) {
    await mindUnknownQueue(shell, queue, options.yes)
    await rowlock.setQueue(queue, settings, operatorOf(shell, options))
  }
  const row = await rowlock.queue(queue)
  if (shell.isJson) return shell.json(row)
  await shell.print(queuePage(shell, row).join('\n'))
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
        ['running', count(row.running)],
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

function concurrency(text: string): number | 'none' {
  const { min, max } = LIMITS.concurrency
  return text === 'none' ? 'none' : wholeNumber(min, max)(text) // commander takes null for a value that is missing
}
