// Asking before something is changed that cannot be changed back. With nobody to ask, `--yes` must have been given.

import { createInterface } from 'node:readline'
import { UsageError } from './exit.ts'
import type { Shell } from './shell.ts'

/**
 * Ask yes or no on the terminal; anything but yes is no, Ctrl-C and Ctrl-D too, and then it is said that nothing was
 * changed. `isYes`: it was given beforehand as `--yes`.
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
  const yesOrNo = shell.talkPaint('bold', '[y/N]')
  const answered = new Promise<boolean | undefined>((resolve) => {
    prompt.on('close', () => resolve(undefined))
    prompt.on('line', (line) => {
      const word = line.trim().toLowerCase()
      if (word === 'y' || word === 'yes') resolve(true)
      else if (word === '' || word === 'n' || word === 'no') resolve(false)
      else stderr.write(`yes or no? ${yesOrNo} `)
    })
  })
  const offs = (['SIGINT', 'SIGTERM'] as const).map((name) => shell.io.onSignal(name, () => prompt.close()))
  try {
    stderr.write(`${question} ${yesOrNo} `)
    const answer = await answered
    // Whoever answers by a key that ends no line is left behind the question.
    if (answer !== true) shell.say(`${answer === undefined ? '\n' : ''}nothing was changed`)
    return answer === true
  } finally {
    prompt.close()
    for (const off of offs) off()
  }
}
