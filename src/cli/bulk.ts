// `rowlock bulk`: bulk changes that were begun; go on with one that was interrupted, or leave it at what was done.

import { Argument, Command } from 'commander'
import { suggest } from '../ground/nearest.ts'
import type { BulkRow } from '../index.ts'
import { ago, count, instant, jobs } from './amounts.ts'
import { outcome, runBulk } from './bulk-run.ts'
import { type Exit, UsageError } from './exit.ts'
import { filterLine } from './filters.ts'
import { inOrder } from './key-order.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import { commandLine, type Shell } from './shell.ts'
import { below, type Column, fields, layout } from './table.ts'
import { id, idOf } from './values.ts'
import { visible } from './visible.ts'

export function bulkCommand(shell: Shell): Command {
  const command = new Command('bulk')
    .summary('list, go on with or stop bulk changes')
    .description('Changes of all jobs that a filter finds, as cancel, redrive and others begin them.')
    .addHelpText('after', '\nExamples:\n  rowlock bulk\n  rowlock bulk resume 7\n  rowlock bulk stop 7')
  const list = new Command('list')
    .description('List bulk changes, newest first.')
    .argument('[words...]', '')
    .addHelpText('after', '\nExamples:\n  rowlock bulk\n  rowlock bulk list --json')
    .action(
      shell.run(([word]: readonly string[]) => {
        if (word === undefined) return listBulks(shell)
        if (idOf(word) !== undefined) return showBulk(shell, word)
        throw new UsageError(
          `bulk has no command '${word}'; ${suggest(word, ['list', 'show', 'resume', 'stop'])}`,
        )
      }),
    )

  command.addCommand(list, { isDefault: true })
  command.addCommand(
    new Command('show')
      .description('Show one bulk change: which jobs, what was done, by whom and why.')
      .addArgument(new Argument('<bulk>', 'its number').argParser(id))
      .addHelpText('after', '\nExamples:\n  rowlock bulk show 7\n  rowlock bulk 7')
      .action(shell.run((n: string) => showBulk(shell, n))),
  )
  command.addCommand(
    new Command('resume')
      .description('Go on with a bulk change that was interrupted, where it stopped.')
      .addArgument(new Argument('<bulk>', 'its number').argParser(id))
      .addHelpText('after', '\nExamples:\n  rowlock bulk resume 7\n  rowlock bulk resume 7 --json')
      .action(shell.run((n: string) => resumeBulk(shell, n))),
  )
  command.addCommand(
    withOperator(
      new Command('stop')
        .description('Leave a bulk change at what was done. Whoever runs it ends after its step.')
        .addArgument(new Argument('<bulk>', 'its number').argParser(id)),
    )
      .addHelpText(
        'after',
        "\nExamples:\n  rowlock bulk stop 7\n  rowlock bulk stop 7 --reason 'wrong queue'",
      )
      .action(shell.run((n: string, options: OperatorOptions) => stopBulk(shell, n, options))),
  )
  return command
}

async function listBulks(shell: Shell): Promise<void> {
  const rows = await (await shell.client()).bulks()
  if (shell.isJson) return shell.ndjson(rows.map((row) => inOrder(row, 'BulkRow')))
  if (rows.length === 0) return shell.say('no bulk change was made yet')
  const shown = layout(rows, columns(new Date()), shell)
  const lines = rows.flatMap((row) => [...shown.lines([row]), ...below(shell, whichOf(row))])
  await shell.print([shown.head, ...lines].join('\n'))
}

async function showBulk(shell: Shell, n: string): Promise<void> {
  const { row } = await (await shell.client()).openBulk(n)
  if (shell.isJson) return shell.json(inOrder(row, 'BulkRow'))
  const { paint } = shell
  const now = new Date()
  const at = (date: Date | null) => (date === null ? undefined : `${instant(date)} (${ago(date, now)})`)
  const pairs: readonly (readonly [string, string | null | undefined])[] = [
    ['which', whichOf(row)],
    ['found', jobs(row.matched, row.about)],
    ['so far', outcome(row)],
    ['begun', at(row.startedAt)],
    ['ended', at(row.endedAt)],
    ['by', row.actor],
    ['why', row.reason],
    ['to go on', row.outcome === null ? commandLine('bulk', 'resume', row.id) : undefined],
  ]
  const shown = pairs.map(([name, value]) => [name, value == null ? undefined : visible(value)] as const)
  const what = [row.verb, ...Object.values(row.args)].join(' ')
  const title = `${paint('bold', `bulk change ${row.id}`)}  ${row.outcome ?? 'open'}  ${visible(what)}`
  await shell.print([title, '', ...fields(shown, paint)].join('\n'))
}

async function resumeBulk(shell: Shell, n: string): Promise<Exit> {
  const bulk = await (await shell.client()).openBulk(n)
  if (bulk.row.outcome === null) return runBulk(shell, bulk)
  shell.say(`bulk change ${n} is over (${bulk.row.outcome}): ${outcome(bulk.row)}`)
  return 'done'
}

async function stopBulk(shell: Shell, n: string, options: OperatorOptions): Promise<void> {
  const bulk = await (await shell.client()).openBulk(n)
  if (bulk.row.outcome !== null) return shell.say(`bulk change ${n} is over already (${bulk.row.outcome})`)
  const row = await bulk.stop(operatorOf(shell, options))
  if (shell.isJson) return shell.json(inOrder(row, 'BulkRow'))
  await shell.print(`bulk change ${n} is stopped: ${outcome(row)}`)
}

const columns = (now: Date): readonly Column<BulkRow>[] => [
  { head: 'BULK', of: (row) => row.id, isNumber: true },
  {
    head: 'STATE',
    of: (row) => row.outcome ?? 'open',
    style: (row) => (row.outcome === null ? 'yellow' : undefined),
  },
  { head: 'WHAT', of: (row) => row.verb },
  { head: 'FOUND', of: (row) => count(row.matched, row.about), isNumber: true },
  { head: 'CHANGED', of: (row) => count(row.changed), isNumber: true },
  { head: 'NOT', of: (row) => notChanged(row), isNumber: true, isOptional: true },
  { head: 'BEGUN', of: (row) => ago(row.startedAt, now), weight: 3 },
  { head: 'BY', of: (row) => row.actor ?? '–', min: 8, weight: 2 },
  { head: 'WHY', of: (row) => row.reason ?? '', isOptional: true, min: 8, weight: 1 },
]

const whichOf = ({ verb, filter }: BulkRow): string => filterLine(verb, filter)

function notChanged({ refused }: BulkRow): string {
  const n = Object.values(refused).reduce((all, each) => all + each, 0)
  return n === 0 ? '' : count(n)
}
