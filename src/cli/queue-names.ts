// The names of queues that there are: for warnings and completion.

import { isRowlockError } from '../ground/errors.ts'
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
  try {
    await shell.client().queue(queue)
  } catch (error) {
    if (!isRowlockError(error, 'QUEUE_NOT_FOUND')) throw error
    shell.say(`${shell.talkPaint('yellow', 'rowlock:')} ${error.message}`)
  }
}
