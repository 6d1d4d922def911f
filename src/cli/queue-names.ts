// The names of queues that there are: for suggestions and completion.

import { nearest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import type { Shell } from './shell.ts'

const MOST = 1_000

export async function queueNames(shell: Shell): Promise<string[]> {
  return (await shell.client().queues({ limit: MOST })).map(({ queue }) => queue)
}

/**
 * Settings may be made before a queue has its first job, so an unknown name is no mistake for sure; but it is said, so
 * that nobody believes that he has paused what he has not.
 */
export async function warnOfUnknownQueue(shell: Shell, queue: string): Promise<void> {
  const names = await queueNames(shell)
  if (names.includes(queue) || names.length >= MOST) return
  const meant = nearest(queue, names)
  const mean = meant === undefined ? '' : `; did you mean ${show(meant)}?`
  const text = `no job, worker or setting names the queue ${show(queue)} yet${mean}`
  shell.say(`${shell.talkPaint('yellow', 'rowlock:')} ${text}`)
}
