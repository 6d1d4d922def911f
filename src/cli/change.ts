// What the commands that change jobs share: ids or a filter, asking first, one answer a job, the exit code.

import { Argument, Command } from 'commander'
import type { Answer, BulkVerb, JobCount, JobFilter, Operator, Rowlock } from '../index.ts'
import { jobs } from './amounts.ts'
import { answerLine, Tally } from './answers.ts'
import { appliesTo } from './applies.ts'
import { runBulk } from './bulk-run.ts'
import { confirm } from './confirm.ts'
import { type Exit, UsageError } from './exit.ts'
import { filterOf, withFilter } from './filters.ts'
import { idsOf } from './ids.ts'
import { jobColumns } from './job-columns.ts'
import { sayNearest } from './known-names.ts'
import { type OperatorOptions, operatorOf, withOperator } from './operator.ts'
import type { Shell } from './shell.ts'
import { table } from './table.ts'

/** A verb as a command. */
export interface Change {
  readonly verb: BulkVerb
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly examples: string
  readonly many: (
    rowlock: Rowlock,
    ids: readonly string[],
    by: Operator,
    priority: number,
  ) => Promise<readonly Answer[]>
  /** What stands before the ids. */
  readonly first?: Argument
}

interface Options extends OperatorOptions, Record<string, unknown> {
  readonly all?: boolean
  readonly anew?: boolean
  readonly yes?: boolean
  readonly dryRun?: boolean
}

const SAMPLE = 5
/** Ids of one call; between two calls an interruption is heard. */
const BATCH = 500

/** The command of a verb. */
export function changeCommand(shell: Shell, change: Change): Command {
  const command = new Command(change.name).summary(change.summary).description(change.description)
  if (change.first !== undefined) command.addArgument(change.first)
  command.addArgument(
    new Argument('[ids...]', 'ids of jobs; - reads them from stdin, one a line or as NDJSON'),
  )
  withOperator(command)
    .option('--yes', 'do not ask; without it a filter, and more than one id, is asked about')
    .option('--anew', 'begin although the same change was begun and has not ended')
    .option('--dry-run', 'count and show what would be changed, and change nothing')
  withFilter(command)
    .option('--all', 'every job that the command applies to: to be said on purpose')
    .addHelpText('after', `\nExamples:\n${change.examples}`)
  const run = (first: unknown, words: readonly string[], options: Options) =>
    changeJobs(shell, change, typeof first === 'number' ? first : 0, words, options)
  return command.action(
    change.first === undefined
      ? shell.run((words: readonly string[], options: Options) => run(0, words, options))
      : shell.run(run),
  )
}

async function changeJobs(
  shell: Shell,
  change: Change,
  priority: number,
  words: readonly string[],
  options: Options,
): Promise<Exit> {
  const filter: JobFilter = { ...filterOf(options), ...(options.all && { all: true }) }
  const isFiltered = Object.keys(filter).length > 0
  if (words.length > 0 && isFiltered) {
    throw new UsageError(
      'give ids or a filter, not both: rowlock jobs … --json | jq -r .id finds the ids of a filter',
    )
  }
  if (words.length === 0 && !isFiltered) {
    throw new UsageError(`which jobs? Give ids, or a filter such as --queue mail, or --all on purpose.`)
  }
  return words.length > 0
    ? changeIds(shell, change, priority, words, options)
    : changeFiltered(shell, change, priority, filter, options)
}

async function changeIds(
  shell: Shell,
  change: Change,
  priority: number,
  words: readonly string[],
  options: Options,
): Promise<Exit> {
  const ids = await idsOf(shell, words)
  if (options.dryRun) {
    shell.say(`would ${change.name} ${jobs(ids.length)}; nothing was changed`)
    if (shell.isJson) await shell.ndjson(ids.map((id) => ({ id })))
    return 'done'
  }
  // The same for every verb: one job that was named is done at once, more are asked about.
  if (ids.length > 1 && !(await confirm(shell, `${change.name} ${jobs(ids.length)}?`, options.yes)))
    return 'interrupted'
  const tally = new Tally()
  const by = operatorOf(shell, options)
  let done = 0
  let isMissing = false
  const exit = await shell.interruptible<Exit>(async (signal) => {
    while (done < ids.length) {
      if (signal.aborted) return 'interrupted'
      const batch = ids.slice(done, done + BATCH)
      const answers = await change.many(await shell.client(), batch, by, priority)
      done += batch.length
      tally.add(answers)
      isMissing = answers.at(-1)?.answer === 'not_found'
      if (shell.isJson) await shell.ndjson(answers)
      else await shell.print(answers.map((answer) => answerLine(answer, shell.paint)).join('\n'))
    }
    return tally.refused === 0 ? 'done' : 'partly'
  })
  if (ids.length > 1 || exit === 'interrupted') shell.say(`${tally}`)
  if (exit === 'interrupted') shell.say(`interrupted: ${jobs(ids.length - done)} were not looked at`)
  return ids.length === 1 && isMissing ? 'notFound' : exit
}

async function changeFiltered(
  shell: Shell,
  change: Change,
  priority: number,
  filter: JobFilter,
  options: Options,
): Promise<Exit> {
  const rowlock = await shell.client()
  const applies = appliesTo(change.verb, filter)
  const { count, about } = await rowlock.countJobs(applies)
  // About 0 is not none: those that fit are few among very many. The change itself looks at each.
  if (count === 0 && !about) {
    shell.say(`no job matches that ${change.name} applies to; nothing was changed`)
    await sayNearest(shell, filter)
    return 'done'
  }
  if (options.dryRun || !options.yes) await showSample(shell, change, applies, { count, about }, options)
  if (options.dryRun) {
    shell.say(`would ${change.name} ${jobs(count, about)}; nothing was changed`)
    return 'done'
  }
  if (!(await confirm(shell, `${change.name} ${jobs(count, about)}?`, options.yes))) return 'interrupted'
  const by = operatorOf(shell, options)
  const bulk = await rowlock.bulk(change.verb, filter, {
    ...by,
    ...(change.verb === 'prioritize' && { priority }),
    ...(options.anew && { anew: true }),
  })
  return runBulk(shell, bulk)
}

/** How many there are, and the newest of them: on stderr, or for programs as one object. */
async function showSample(
  shell: Shell,
  change: Change,
  filter: JobFilter,
  { count, about }: JobCount,
  options: Options,
): Promise<void> {
  const { jobs: sample } = await (await shell.client()).jobs(filter, { limit: SAMPLE })
  if (options.dryRun && shell.isJson) return shell.json({ verb: change.verb, count, about, sample })
  const frame = { width: shell.talkWidth, paint: shell.talkPaint }
  const isMore = about || count > sample.length
  if (about && count === 0) {
    shell.say('at least 0 jobs: there are too many to count to the end, and none of those looked at matches')
  } else {
    shell.say(isMore ? `${jobs(count, about)}, the newest of them:` : `${jobs(count)}:`)
  }
  if (sample.length > 0) shell.say(`${table(sample, jobColumns(new Date()), frame).join('\n')}\n`)
}
