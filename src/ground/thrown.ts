// Whatever a handler threw, as data that can always be stored: bounded, sanitised, and made without throwing.
import { isPermanent } from './decisions.ts'
import { LIMITS } from './limits.ts'
import { isError, peek, show } from './show.ts'
import { cutText, storableText } from './text.ts'

/** What is kept of an error. */
interface ErrorRecord {
  readonly name?: string
  readonly message: string
  readonly code?: string | number
  /** The frames, without the line that repeats name and message. */
  readonly stack?: string
  /** What caused it, from the outside in. */
  readonly causes?: readonly ErrorRecord[]
  /** What an AggregateError gathered; the first ones. */
  readonly errors?: readonly ErrorRecord[]
}

/** What was thrown: a word to group by, and the error. */
export interface Thrown {
  readonly cause: string
  readonly error: ErrorRecord
}

type Draft = { -readonly [K in keyof ErrorRecord]: ErrorRecord[K] }

const WORD = /^[\p{L}\p{N}_$][\p{L}\p{N}_$.:/-]*$/u
const SHARES = [1, 1 / 2, 1 / 4, 1 / 16, 1 / 64]
const MESSAGE_BYTES = LIMITS.errorBytes.max / 4
const STACK_BYTES = LIMITS.errorBytes.max / 2
/** Parts beside the error itself get this share of its room. */
const PART_SHARE = 1 / 4

/**
 * Describe anything that was thrown. Never throws, whatever it is given; the JSON of `error` is at most 16,000 bytes.
 *
 * Shape: `cause` is the error's `code` when that is a word or a whole number, else its `name`, else `Error`; for what
 * is no Error, `non_error`. An error made by `permanent` is described as the one it was made of. NUL and lone
 * surrogates become U+FFFD; what was cut ends with `…`; fields other than name, message, code, stack, cause and errors
 * are ignored.
 */
export function describeThrown(value: unknown): Thrown {
  try {
    const inner = isPermanent(value) ? peek(value, 'inner') : value
    return { cause: causeOf(inner), error: bounded(inner) }
  } catch {
    // Only an exhausted stack or memory comes here.
    return { cause: 'non_error', error: { message: 'an error that cannot be described' } }
  }
}

function causeOf(value: unknown): string {
  if (!isError(value)) return 'non_error'
  const code = peek(value, 'code')
  if (typeof code === 'string' && isWord(code)) return code
  // The numbers of a DOMException are a legacy; its name is its code.
  if (Number.isInteger(code) && !isDomException(value)) return String(code)
  const name = peek(value, 'name')
  return typeof name === 'string' && isWord(name) ? name : 'Error'
}

function isWord(text: string): boolean {
  const max = LIMITS.causeBytes.max
  return text.length <= max && Buffer.byteLength(text) <= max && WORD.test(text)
}

function isDomException(value: object): boolean {
  return peek(value, Symbol.toStringTag) === 'DOMException'
}

/** JSON may write one byte as six, so the room for texts shrinks until the whole fits. */
function bounded(value: unknown): ErrorRecord {
  for (const share of SHARES) {
    const error = new Reader(share).read(value, 1)
    if (Buffer.byteLength(JSON.stringify(error)) <= LIMITS.errorBytes.max) return error
  }
  return { message: 'an error that is too large to be described' }
}

class Reader {
  readonly #share: number
  readonly #seen = new Set<unknown>()
  #parts: number = LIMITS.errorParts.max

  constructor(share: number) {
    this.#share = share
  }

  read(value: unknown, share: number): ErrorRecord {
    const messageBytes = Math.floor(MESSAGE_BYTES * this.#share * share)
    if (!isError(value)) {
      const text = typeof value === 'string' ? storableText(value, messageBytes) : show(value, messageBytes)
      return { message: text === '' ? 'an empty string' : text }
    }
    this.#seen.add(value)
    const error: Draft = { message: '' }
    const name = peek(value, 'name')
    if (typeof name === 'string' && name !== '') error.name = storableText(name, LIMITS.causeBytes.max)
    const message = peek(value, 'message')
    const said =
      typeof message === 'string' ? message : message === undefined ? '' : show(message, messageBytes)
    error.message = storableText(said === '' ? (error.name ?? 'Error') : said, messageBytes)
    const code = peek(value, 'code')
    if (typeof code === 'string') error.code = storableText(code, LIMITS.causeBytes.max)
    else if (typeof code === 'number' && Number.isFinite(code)) error.code = code + 0
    const stack = peek(value, 'stack')
    if (typeof stack === 'string') {
      const frames = framesOf(stack, said)
      if (frames !== '') error.stack = storableText(frames, Math.floor(STACK_BYTES * this.#share * share))
    }
    this.#addErrors(value, error)
    if (share === 1) this.#addCauses(value, error)
    return error
  }

  #addCauses(value: Error, error: Draft): void {
    const causes: ErrorRecord[] = []
    let cause = peek(value, 'cause')
    while (cause !== undefined && cause !== null && !this.#seen.has(cause)) {
      if (this.#parts-- <= 0) break
      causes.push(this.read(cause, PART_SHARE))
      cause = isError(cause) ? peek(cause, 'cause') : undefined
    }
    if (causes.length > 0) error.causes = causes
  }

  #addErrors(value: Error, error: Draft): void {
    if (!isAggregate(value)) return
    const gathered = peek(value, 'errors')
    const length = peek(gathered, 'length')
    if (typeof length !== 'number' || !(length > 0)) return
    const errors: ErrorRecord[] = []
    for (let i = 0; i < length; i++) {
      const one = peek(gathered, i)
      if (this.#seen.has(one)) continue
      if (this.#parts-- <= 0) {
        errors.push({ message: `… and ${length - i} more` })
        break
      }
      errors.push(this.read(one, PART_SHARE))
    }
    if (errors.length > 0) error.errors = errors
  }
}

function isAggregate(value: Error): boolean {
  return value instanceof AggregateError || peek(value, 'name') === 'AggregateError'
}

/** The stack without the lines at its front that repeat name and message, however long those are. */
function framesOf(stack: string, message: string): string {
  const at = message === '' ? -1 : stack.indexOf(message)
  const rest = at >= 0 && at <= LIMITS.causeBytes.max ? stack.slice(at + message.length) : stack
  const first = rest.search(/^\s*at /m)
  return (first < 0 ? cutText(rest, STACK_BYTES) : rest.slice(first)).trim()
}
