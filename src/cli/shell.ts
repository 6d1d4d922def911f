// One call of the command line, as its command sees it: the global options, the client, where data and talk go, what
// an interruption does. Stdout carries data and nothing else; stderr carries talk.

import type { Rowlock } from '../index.ts'
import { addressOf, withoutPassword } from './address.ts'
import { EXITS, type Exit } from './exit.ts'
import type { Io } from './io.ts'
import { hasColours, type Paint, painter } from './paint.ts'
import { visible } from './visible.ts'

/** The options that every command has; they may stand before or after it. */
export interface GlobalOptions {
  readonly url?: string
  readonly schema?: string
  readonly json?: boolean
  readonly color?: boolean
}

const UNKNOWN_WIDTH = 80

export class Shell {
  readonly io: Io
  readonly #args: readonly string[]
  #options: GlobalOptions = {}
  #client: Promise<Rowlock> | undefined
  #changes = 0
  #paint: Paint | undefined
  #talkPaint: Paint | undefined
  /** How the command ended, when it did not throw. */
  exit: Exit = 'done'
  /** The command that is called. */
  command: string | undefined
  /** The exit code of a program that the command ran and stands for. */
  code: number | undefined

  constructor(io: Io, args: readonly string[]) {
    this.io = io
    this.#args = args
  }

  configure(options: GlobalOptions): void {
    this.#options = options
  }

  /** The action of a command: what it answers is how it ended; nothing is `done`. */
  run<Args extends unknown[]>(body: (...args: Args) => Promise<Exit | undefined> | Promise<void>) {
    return async (...args: Args): Promise<void> => {
      this.exit = (await body(...args)) ?? 'done'
    }
  }

  get isJson(): boolean {
    return this.#options.json === true
  }

  get schema(): string {
    return this.#options.schema ?? (this.io.env.ROWLOCK_SCHEMA || 'rowlock')
  }

  /** Errors: INVALID_OPTION when none is given, or it is no address of PostgreSQL. */
  get url(): string {
    return addressOf(this.#options.url ?? this.io.env.DATABASE_URL)
  }

  /** The client of this call; it connects when it is first used, and is closed when the call ends. */
  client(): Promise<Rowlock> {
    this.#client ??= this.#connect()
    return this.#client
  }

  /** Help and completion need no library: it is loaded by whoever asks the database. */
  async #connect(): Promise<Rowlock> {
    const { createRowlock } = await import('../rowlock.ts')
    return createRowlock({
      connectionString: this.url,
      schema: this.schema,
      maxConnections: 2,
      applicationName: 'rowlock cli',
    })
  }

  /** Can somebody be asked? */
  get isAttended(): boolean {
    return this.io.stdin.isTTY === true && this.io.stderr.isTTY === true
  }

  /** Columns of the terminal that stdout is, 80 when it is none. */
  get width(): number {
    return widthOf(this.io.stdout.columns, this.io.env.COLUMNS)
  }

  /** Columns of the terminal that stderr is. */
  get talkWidth(): number {
    return widthOf(this.io.stderr.columns, this.io.env.COLUMNS)
  }

  /** Colours for stdout. */
  get paint(): Paint {
    this.#paint ??= painter(hasColours(this.io.stdout, this.io.env, this.#options.color))
    return this.#paint
  }

  /** Colours for stderr. */
  get talkPaint(): Paint {
    this.#talkPaint ??= painter(hasColours(this.io.stderr, this.io.env, this.#options.color))
    return this.#talkPaint
  }

  /** Text for people on stdout; waits for a slow reader. */
  async print(text: string): Promise<void> {
    const whole = text.endsWith('\n') ? text : `${text}\n`
    await new Promise<void>((resolve) => this.io.stdout.write(whole, () => resolve()))
  }

  /** One object as one line of JSON on stdout. */
  async json(value: object): Promise<void> {
    await this.print(JSON.stringify(value))
  }

  /** Objects as NDJSON on stdout. */
  async ndjson(values: readonly object[]): Promise<void> {
    if (values.length > 0) await this.print(values.map((value) => JSON.stringify(value)).join('\n'))
  }

  /** Talk: a line on stderr. */
  say(text: string): void {
    this.io.stderr.write(`${withoutPassword(text, this.#options.url, this.io.env.DATABASE_URL)}\n`)
  }

  /** What was typed, and more, to be typed again. */
  again(...more: readonly string[]): string {
    return commandLine(...this.#args.filter((arg) => !more.includes(arg)), ...more)
  }

  /** What was typed without one of its words, and more, to be typed again. */
  againWithout(word: string, ...more: readonly string[]): string {
    return commandLine(...this.#args.filter((arg) => arg !== word), ...more)
  }

  /** What was typed, with another value for one option. */
  againWith(option: string, value: string): string {
    const kept = this.#args.filter(
      (arg, n) => arg !== option && !arg.startsWith(`${option}=`) && this.#args[n - 1] !== option,
    )
    return commandLine(...kept, option, value)
  }

  /**
   * Work in steps that may end between two of them. The first Ctrl-C (or SIGTERM) aborts the signal, so that the
   * running step ends and what was done is said; the second ends the process at once. A change also goes on when nobody
   * reads what it says.
   */
  async interruptible<T>(body: (signal: AbortSignal) => Promise<T>, isChange = true): Promise<T> {
    const controller = new AbortController()
    const listener = () => {
      if (controller.signal.aborted) return this.io.exit(EXITS.interrupted.code)
      controller.abort()
      if (isChange) this.say('\nrowlock: the running step is being finished; Ctrl-C again ends at once')
    }
    const offs = (['SIGINT', 'SIGTERM'] as const).map((name) => this.io.onSignal(name, listener))
    if (isChange) this.#changes++
    try {
      return await body(controller.signal)
    } finally {
      if (isChange) this.#changes--
      for (const off of offs) off()
    }
  }

  /** Nobody reads stdout any more. No reason to stop in the middle of a change; else there is nothing left to do. */
  unread(): void {
    if (this.#changes === 0) this.io.exit(EXITS.done.code)
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined)
    await client?.close()
  }
}

function widthOf(columns: number | undefined, told: string | undefined): number {
  const width = columns || Number(told)
  return Number.isInteger(width) && width >= 20 ? width : UNKNOWN_WIDTH
}

/** `rowlock …` with each word quoted where a shell needs it, and no password. */
export function commandLine(...args: readonly string[]): string {
  return `rowlock ${quotedWords(args)}`
}

/** Words as a shell reads them. */
export function quotedWords(args: readonly string[]): string {
  const words = args.map((arg) => {
    const word = /^postgres(ql)?:/.test(arg) ? withoutPassword(arg, arg) : arg
    if (/^[\w@%+=:,./-]+$/.test(word)) return word
    if (visible(word) === word) return `'${word.replaceAll("'", `'\\''`)}'`
    return `$'${[...word].map(escaped).join('')}'`
  })
  return words.join(' ')
}

/** A character within `$'…'` of bash and zsh. */
function escaped(sign: string): string {
  if (sign === "'" || sign === '\\') return `\\${sign}`
  if (visible(sign) === sign) return sign
  const code = sign.codePointAt(0)!.toString(16)
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\U${code.padStart(8, '0')}`
}
