// What a call of the command line touches of its process: streams, environment, signals, clock. Tests bring their own.

import { hostname, userInfo } from 'node:os'

/** A stream that text is written to, and, of a terminal, how wide it is. */
export interface Sink {
  write(text: string, done?: () => void): boolean
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** Where text is read from. */
interface Source extends NodeJS.ReadableStream {
  readonly isTTY?: boolean | undefined
}

export interface Io {
  readonly stdin: Source
  readonly stdout: Sink
  readonly stderr: Sink
  readonly env: Readonly<Record<string, string | undefined>>
  /** Who runs it, as `user@host`. */
  readonly user: string
  /** Hear of a signal instead of dying of it, until the returned function is called. */
  onSignal(name: 'SIGINT' | 'SIGTERM', listener: () => void): () => void
  /** End the process without another word. */
  exit(code: number): void
  /** Unit: ms, of a clock that only goes forward. */
  now(): number
}

/** The real ones. */
export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    get user() {
      return whoRuns()
    },
    onSignal(name, listener) {
      process.on(name, listener)
      return () => void process.off(name, listener)
    },
    exit: (code) => process.exit(code),
    now: () => performance.now(),
  }
}

/** In a container the user may have no name; then its number. */
function whoRuns(): string {
  let name: string
  try {
    name = userInfo().username
  } catch {
    name = String(process.getuid?.() ?? 'unknown')
  }
  return `${name}@${hostname()}`
}
