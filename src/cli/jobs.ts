// `rowlock jobs`: a list of jobs, newest first.

import { Command } from 'commander'
import type { ListedJob } from '../index.ts'
import { jobs as jobsInWords } from './amounts.ts'
import type { Exit } from './exit.ts'
import { filterOf, withFilter } from './filters.ts'
import { jobColumns } from './job-columns.ts'
import { inOrder } from './key-order.ts'
import { sayNearest } from './known-names.ts'
import { lookAtJobs } from './paging.ts'
import type { Shell } from './shell.ts'
import { type Layout, layout } from './table.ts'
import { id, wholeNumber } from './values.ts'

interface Options extends Record<string, unknown> {
  readonly limit: number
  readonly before?: string
  readonly allPages?: boolean
}

export function jobsCommand(shell: Shell): Command {
  return withFilter(
    new Command('jobs')
      .summary('list jobs, newest first')
      .description('List jobs, newest first. All given conditions must hold.')
      .option('--limit <n>', 'how many at most', wholeNumber(1, 10_000), 50)
      .option('--before <id>', 'only jobs with a lower id: the next page', id)
      .option('--all-pages', 'all of them, however many: for --json'),
  )
    .addHelpText(
      'after',
      `
Examples:
  rowlock jobs --state dead_letter --queue mail
  rowlock jobs --state failed --ended-since 2h --limit 200
  rowlock jobs --kind invoice --metadata '{"order":42}'
  rowlock jobs --cause timeout --json | rowlock run-now - --yes`,
    )
    .action(shell.run((options: Options) => run(shell, options)))
}

async function run(shell: Shell, options: Options): Promise<Exit> {
  const { limit, before, allPages } = options
  let shown: Layout<ListedJob> | undefined
  let last: string | undefined
  const now = new Date()
  const filter = filterOf(options)
  const pages = { limit: allPages ? undefined : limit, before }
  const { jobs, next, isInterrupted } = await lookAtJobs(shell, filter, pages, async (found) => {
    last = found.at(-1)!.id
    if (shell.isJson) return shell.ndjson(found.map((job) => inOrder(job, 'JobRow')))
    const isFirst = shown === undefined
    shown ??= layout(found, jobColumns(now), shell)
    await shell.print([...(isFirst ? [shown.head] : []), ...shown.lines(found)].join('\n'))
  })
  const from = next ?? last
  if (jobs === 0 && !isInterrupted) {
    shell.say('no job matches')
    await sayNearest(shell, filter)
  } else if (next !== null) {
    shell.say(`${jobsInWords(jobs)} shown; older ones: ${shell.againWith('--before', from!)}`)
  }
  return isInterrupted ? 'interrupted' : 'done'
}
