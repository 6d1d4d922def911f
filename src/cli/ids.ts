// Ids as arguments, or from stdin: one a line, or NDJSON with an `id`, as `rowlock jobs --json` prints it.

import { createInterface } from 'node:readline'
import { show } from '../ground/show.ts'
import { UsageError } from './exit.ts'
import type { Shell } from './shell.ts'
import { idOf, wrongId } from './values.ts'

/** Each id once, in order. A `-` among the words stands for what stdin has. Errors: UsageError. */
export async function idsOf(shell: Shell, words: readonly string[]): Promise<string[]> {
  const ids = new Set<string>()
  for (const word of words) {
    if (word === '-') for await (const id of idsOfStdin(shell)) ids.add(id)
    else ids.add(idOf(word) ?? refuse(wrongId(word)))
  }
  return [...ids]
}

async function* idsOfStdin(shell: Shell): AsyncIterable<string> {
  let n = 0
  for await (const line of createInterface({ input: shell.io.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    n++
    const text = line.trim()
    if (text === '') continue
    yield idOf(text) ??
      idOf(idField(text)) ??
      refuse(
        `line ${n} of stdin is neither an id nor a JSON object with one: ${show(text, 40)}; nothing was changed`,
      )
  }
}

function idField(line: string): unknown {
  try {
    return (JSON.parse(line) as { id?: unknown } | null)?.id
  } catch {
    return undefined
  }
}

function refuse(message: string): never {
  throw new UsageError(message)
}
