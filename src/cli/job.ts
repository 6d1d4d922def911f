// `rowlock job`: one job with its whole story.

import { Argument, Command } from 'commander'
import type { JobFilter, JobRow, ListedJob } from '../index.ts'
import { type Exit, UsageError } from './exit.ts'
import { FILTER_FLAGS, filterOf, withFilter } from './filters.ts'
import { jobColumns } from './job-columns.ts'
import { jobPage } from './job-page.ts'
import { inOrder } from './key-order.ts'
import { lookAtJobs } from './paging.ts'
import type { Shell } from './shell.ts'
import { table } from './table.ts'
import { id } from './values.ts'

const KEYS = ['dedupe-key', 'idempotency-key', 'metadata', 'queue'] as const
const MOST = 50

export function jobCommand(shell: Shell): Command {
  return withFilter(
    new Command('job')
      .summary('show a job with its whole story')
      .description(
        'Show a job with its whole story, by its id or by what else it is known by. Several found are listed.',
      )
      .addArgument(new Argument('[id]', 'its id').argParser(id)),
    FILTER_FLAGS.filter((flag) => !(KEYS as readonly string[]).includes(flag)),
  )
    .addHelpText(
      'after',
      `
Examples:
  rowlock job 4711
  rowlock job --dedupe-key invoice-42 --queue billing
  rowlock job --metadata '{"order":42}'
  rowlock job 4711 --json | jq .input`,
    )
    .action(
      shell.run((job: string | undefined, options: Record<string, unknown>) => run(shell, job, options)),
    )
}

async function run(shell: Shell, job: string | undefined, options: Record<string, unknown>): Promise<Exit> {
  const filter = filterOf(options)
  const { queue: _, ...keys } = filter
  const isKeyed = Object.keys(keys).length > 0
  if (job === undefined && !isKeyed)
    throw new UsageError('which job? Give its id, --dedupe-key, --idempotency-key or --metadata.')
  if (job !== undefined && Object.keys(filter).length > 0)
    throw new UsageError('give an id or a key, not both')
  return job === undefined ? find(shell, filter) : show(shell, job)
}

async function find(shell: Shell, filter: JobFilter): Promise<Exit> {
  const found: ListedJob[] = []
  const { isInterrupted, next } = await lookAtJobs(
    shell,
    filter,
    { limit: MOST },
    async (jobs) => void found.push(...jobs),
  )
  if (isInterrupted) return 'interrupted'
  if (found.length === 0) {
    shell.say('rowlock: no job matches; it may have been dropped from history')
    return 'notFound'
  }
  if (found.length === 1) return show(shell, found[0]!.id)
  if (shell.isJson) await shell.ndjson(found.map((each) => inOrder(each, 'JobRow')))
  else await shell.print(table(found, jobColumns(new Date()), shell).join('\n'))
  shell.say(`${found.length}${next === null ? '' : ' or more'} jobs match; rowlock job <id> shows one`)
  return 'done'
}

async function show(shell: Shell, job: string): Promise<Exit> {
  const rowlock = await shell.client()
  const row: JobRow | null = await rowlock.job(job)
  if (row === null) {
    shell.say(`rowlock: there is no job ${job}: it never existed, or its history has been dropped`)
    return 'notFound'
  }
  const story = await rowlock.story(job)
  if (shell.isJson) await shell.json({ ...inOrder(row, 'JobRow'), story })
  else await shell.print(jobPage(shell, row, story, new Date()).join('\n'))
  return 'done'
}
