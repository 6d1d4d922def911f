// Asking before something is changed that cannot be changed back. With nobody to ask, `--yes` must have been given.

import { createInterface } from 'node:readline/promises'
import { UsageError } from './exit.ts'
import type { Shell } from './shell.ts'

/**
 * Ask yes or no on the terminal; anything but yes is no. `isYes`: it was given beforehand as `--yes`.
 *
 * Errors: UsageError when nobody can be asked, with what to type.
 */
export async function confirm(shell: Shell, question: string, isYes: boolean | undefined): Promise<boolean> {
  if (isYes === true) return true
  if (!shell.isAttended) {
    throw new UsageError(
      `there is no terminal to ask on; nothing was changed. To do it: ${shell.again('--yes')}`,
    )
  }
  const { stdin, stderr } = shell.io
  const prompt = createInterface({
    input: stdin,
    output: stderr as unknown as NodeJS.WritableStream,
    terminal: false,
  })
  try {
    stderr.write(`${question} ${shell.talkPaint('bold', '[y/N]')} `)
    for await (const line of prompt) {
      const word = line.trim().toLowerCase()
      if (word === 'y' || word === 'yes') return true
      if (word === '' || word === 'n' || word === 'no') return false
      stderr.write(`yes or no? ${shell.talkPaint('bold', '[y/N]')} `)
    }
    return false
  } finally {
    prompt.close()
  }
}
