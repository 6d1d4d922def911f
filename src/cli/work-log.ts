// The log of a worker that the command line runs: lines for people on stderr, or NDJSON on stdout.

import type { Logger } from '../worker/log.ts'
import type { Shell } from './shell.ts'
import { visibleLines } from './visible.ts'

export interface WorkLog extends Logger {
  /** Resolves when all of it is written. */
  flushed(): Promise<void>
}

const COLOURS = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' } as const

export function workLog(shell: Shell): WorkLog {
  const { stdout, stderr } = shell.io
  const paint = shell.talkPaint
  const sink = shell.isJson ? stdout : stderr
  const write = (level: keyof typeof COLOURS) => (fields: object, message: string) => {
    const at = new Date().toISOString()
    if (shell.isJson) sink.write(`${JSON.stringify({ level, time: at, message, ...fields })}\n`)
    else
      sink.write(
        `${paint('dim', at.slice(11, 19))} ${paint(COLOURS[level], level.padEnd(5))} ${forPeople(fields, message)}\n`,
      )
  }
  return {
    debug() {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    flushed: () => new Promise((resolve) => void sink.write('', () => resolve())),
  }
}

/** A message, its fields behind it, a stack below it. */
function forPeople(fields: object, message: string): string {
  const words: string[] = []
  let below = ''
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string' && value.includes('\n')) below += `\n${visibleLines(value).join('\n')}`
    else words.push(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  }
  return visibleLines(words.length === 0 ? message : `${message}  ${words.join(' ')}`).join(' ') + below
}
