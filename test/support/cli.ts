// The command line in this process: words in; an exit code, stdout and stderr out. A terminal when it is asked for.

import { PassThrough } from 'node:stream'
import type { Io, Sink } from '../../src/cli/io.ts'
import { main } from '../../src/cli/program.ts'

type Hears = (text: string, call: { interrupt(signal?: 'SIGINT' | 'SIGTERM'): void }) => void

export interface CallOptions {
  readonly url?: string
  readonly env?: Readonly<Record<string, string>>
  /** What stdin has. On a terminal: what somebody types. */
  readonly input?: string
  /** Nothing more is typed: Ctrl-D. */
  readonly end?: boolean
  /** All three streams are a terminal of so many columns. */
  readonly terminal?: number
  /** Is told of each piece that goes to stderr; may interrupt. */
  readonly onTalk?: Hears
  /** The same for stdout. */
  readonly onData?: Hears
}

export interface Called {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Codes that the process was to end with at once. */
  readonly exits: readonly number[]
}

/** Run one call in this process. */
export async function call(args: readonly string[], options: CallOptions = {}): Promise<Called> {
  const { url, env = {}, input, terminal, onTalk, onData, end = terminal === undefined } = options
  const text = { stdout: '', stderr: '' }
  const listeners = new Set<{ readonly name: string; readonly listener: () => void }>()
  const exits: number[] = []
  const interrupt = (signal: 'SIGINT' | 'SIGTERM' = 'SIGINT') => {
    for (const { name, listener } of [...listeners]) if (name === signal) listener()
  }
  const sink = (name: 'stdout' | 'stderr'): Sink => ({
    isTTY: terminal !== undefined,
    columns: terminal,
    write(piece, done) {
      text[name] += piece
      const hears = name === 'stderr' ? onTalk : onData
      hears?.(piece, { interrupt })
      done?.()
      return true
    },
  })
  const stdin = Object.assign(new PassThrough(), { isTTY: terminal !== undefined })
  if (input !== undefined) stdin.write(input)
  if (end) stdin.end()
  let at = 0
  const io: Io = {
    stdin,
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    env: { ...(url !== undefined && { DATABASE_URL: url }), ...env },
    user: 'ada@test',
    onSignal(name, listener) {
      const entry = { name, listener }
      listeners.add(entry)
      return () => void listeners.delete(entry)
    },
    exit: (code) => void exits.push(code),
    now: () => (at += 50),
  }
  const code = await main(args, io)
  return { code, ...text, exits }
}

/** What NDJSON holds. */
export const linesOf = (ndjson: string): any[] =>
  ndjson
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
