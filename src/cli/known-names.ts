// The names of queues and kinds that there are: for slips, warnings and completion. A name that nobody knows yet is no
// mistake for sure; one that nearly is a known one probably is.

import { isRowlockError } from '../ground/errors.ts'
import { nearest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import type { JobFilter } from '../index.ts'
import { UsageError } from './exit.ts'
import type { Shell } from './shell.ts'

const MOST = 1_000

export async function queueNames(shell: Shell): Promise<string[]> {
  return (await (await shell.client()).queues({ limit: MOST })).map(({ queue }) => queue)
}

/** Kinds that workers handle, that the newest jobs have, and that dead letters have. */
async function kindNames(shell: Shell): Promise<string[]> {
  const rowlock = await shell.client()
  const [workers, { jobs }, groups] = await Promise.all([
    rowlock.workers(),
    rowlock.jobs({}, { limit: MOST }),
    rowlock.deadLetters({}, { limit: MOST }),
  ])
  return [
    ...new Set([
      ...workers.flatMap(({ kinds }) => kinds ?? []),
      ...[...jobs, ...groups].map(({ kind }) => kind),
    ]),
  ]
}

/** Nothing was found: of each queue and kind that is unknown and near a known one, that one is said. */
export async function sayNearest(
  shell: Shell,
  { queue, kind }: Pick<JobFilter, 'queue' | 'kind'>,
): Promise<void> {
  const names = { queue, kind }
  for (const what of ['queue', 'kind'] as const) {
    const given = [names[what] ?? []].flat()
    if (given.length === 0) continue
    const known = await (what === 'queue' ? queueNames(shell) : kindNames(shell))
    for (const name of given.filter((each) => !known.includes(each))) {
      const meant = nearest(name, known)
      const mean = meant === undefined ? '' : `; did you mean ${show(meant)}?`
      shell.say(`${shell.talkPaint('yellow', 'rowlock:')} nothing has the ${what} ${show(name)}${mean}`)
    }
  }
}

/** `shard-2` is no slip for `shard-1`. */
const numberless = (name: string): string => name.replaceAll(/\d+/g, '#')

/**
 * Settings may be made before a queue has its first job, so an unknown name is only said; one that is near a known one
 * is refused, so that nobody believes that he has paused what he has not, and no queue comes to be by a slip.
 *
 * Errors: UsageError.
 */
export async function mindUnknownQueue(
  shell: Shell,
  queue: string,
  isYes: boolean | undefined,
): Promise<void> {
  try {
    await (await shell.client()).queue(queue)
  } catch (error) {
    if (!isRowlockError(error, 'QUEUE_NOT_FOUND')) throw error
    const meant = isYes === true ? undefined : nearest(queue, await queueNames(shell))
    if (meant !== undefined && numberless(meant) !== numberless(queue))
      throw new UsageError(
        `${error.message}\n  Nothing was changed. If ${show(queue)} is meant: ${shell.again('--yes')}`,
      )
    shell.say(`${shell.talkPaint('yellow', 'rowlock:')} ${error.message}`)
  }
}
