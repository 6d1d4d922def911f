// The judge of what jsonb can store: copies a value into its plain form, reading each part once, or refuses it with
// its path, what was found and what to do. Only values that the quick look in `json.ts` was not sure of come here.
import { types } from 'node:util'
import { RowlockError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { pathText } from './path.ts'
import { isPlainObject } from './plain.ts'
import { peek, show } from './show.ts'
import { describeBytes } from './size.ts'
import { storableText } from './text.ts'

/** What the JSON is for: it is named in messages, and `metadata` stands at the front of its paths. */
export type StoredAs = 'input' | 'metadata' | 'result'

interface Options {
  readonly maxBytes: number
  readonly what: StoredAs
}

/**
 * Copy a value into nulls, booleans, numbers, strings, arrays and objects without prototype.
 *
 * Errors: INPUT_NOT_STORABLE, INPUT_TOO_LARGE. Never another one: what the value's own code throws is refused too.
 */
export function storableCopy(value: unknown, options: Options): unknown {
  const copier = new Copier(options)
  try {
    return copier.copy(value)
  } catch (error) {
    throw (
      copier.verdict ??
      copier.refuse(`something that throws when it is read (${reasonOf(error)})`, 'pass plain data')
    )
  }
}

/** The error for a value whose JSON is larger than its limit. */
export function tooLarge({ maxBytes, what }: Options, size: string): RowlockError {
  const limit = `at most ${describeBytes(maxBytes)} can be stored`
  const message = `The ${what} is ${size} of JSON; ${limit}. Keep the data elsewhere and store a reference to it.`
  return new RowlockError('INPUT_TOO_LARGE', message, what === 'metadata' ? { path: 'metadata' } : {})
}

function reasonOf(error: unknown): string {
  const message = peek(error, 'message')
  return show(typeof message === 'string' ? message : error)
}

type ToJson = (this: object, key: string) => unknown

class Copier {
  /** The refusal, once there is one: told apart from errors that the value's own code throws. */
  verdict: RowlockError | undefined
  readonly #options: Options
  readonly #keys: PropertyKey[]
  readonly #around: object[] = []
  #left: number

  constructor(options: Options) {
    this.#options = options
    this.#left = options.maxBytes
    this.#keys = options.what === 'metadata' ? ['metadata'] : []
  }

  copy(value: unknown, mayConvert = true): unknown {
    switch (typeof value) {
      case 'string':
        this.#checkText(value, 'a string')
        return value
      case 'number':
        if (!Number.isFinite(value))
          throw this.refuse(String(value), 'pass a finite number, null or a string')
        this.#spend(1)
        return value
      case 'boolean':
        this.#spend(1)
        return value
      case 'object':
        return value === null ? this.#null() : this.#object(value, mayConvert)
      case 'undefined':
        throw this.refuse('undefined', this.#around.length === 0 ? 'pass null or {}' : 'put null there')
      case 'bigint':
        throw this.refuse(`a BigInt (${show(value, 40)})`, 'pass it as a string')
      case 'function':
        throw this.refuse('a function', 'pass data; code belongs into the handler')
      default:
        throw this.refuse('a symbol', 'pass a string')
    }
  }

  refuse(found: string, remedy: string): RowlockError {
    const path = pathText(this.#keys)
    const what = this.#options.what
    const where = path === '' ? `the ${what} itself` : path
    const message = `The ${what} cannot be stored: ${where} is ${found}; ${remedy}.`
    this.verdict = new RowlockError('INPUT_NOT_STORABLE', message, { path })
    return this.verdict
  }

  #null(): null {
    this.#spend(1)
    return null
  }

  #object(value: object, mayConvert: boolean): unknown {
    const cycle = this.#around.indexOf(value)
    if (cycle >= 0) throw this.#refuseCycle(cycle)
    if (this.#around.length >= LIMITS.inputDepth.max) {
      throw this.refuse(`deeper than ${LIMITS.inputDepth.max} levels`, 'pass flatter data')
    }
    if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) {
      throw this.refuse('binary data', "encode it as base64: Buffer.from(data).toString('base64')")
    }
    if (types.isDate(value)) {
      if (Number.isNaN(Date.prototype.getTime.call(value)))
        throw this.refuse('an invalid date', 'pass a valid one or null')
      if (value.toJSON === Date.prototype.toJSON || !mayConvert)
        return this.copy(Date.prototype.toISOString.call(value))
    }
    const toJSON = mayConvert ? (value as { toJSON?: ToJson }).toJSON : undefined
    if (typeof toJSON === 'function') return this.#converted(value, toJSON)
    const plain = Array.isArray(value)
      ? this.#array(value)
      : isPlainObject(value)
        ? this.#record(value)
        : undefined
    if (plain !== undefined) return plain
    const [found, remedy] = foreign(value)
    throw this.refuse(found, remedy)
  }

  #converted(value: object, toJSON: ToJson): unknown {
    const key = this.#keys.at(-1) ?? ''
    const result = toJSON.call(value, String(key))
    if (result === undefined && this.#around.length > 0 && typeof key !== 'number') return undefined
    return this.copy(result, false)
  }

  #array(value: readonly unknown[]): unknown[] {
    this.#spend(1)
    const copy: unknown[] = []
    this.#around.push(value)
    const { length } = value
    for (let i = 0; i < length; i++) {
      this.#keys.push(i)
      const item = value[i]
      if (item === undefined && !(i in value)) throw this.refuse('a hole in an array', 'put null there')
      copy.push(this.copy(item))
      this.#keys.pop()
    }
    this.#around.pop()
    return copy
  }

  #record(value: Record<string, unknown>): Record<string, unknown> {
    this.#spend(1)
    // Without a prototype, `__proto__` is a key like any other.
    const copy: Record<string, unknown> = Object.create(null)
    this.#around.push(value)
    for (const key of Object.keys(value)) {
      this.#keys.push(key)
      const item = value[key]
      if (item !== undefined) {
        this.#checkText(key, 'under a key')
        const copied = this.copy(item)
        if (copied !== undefined) copy[key] = copied
      }
      this.#keys.pop()
    }
    this.#around.pop()
    return copy
  }

  #checkText(text: string, found: string): void {
    this.#spend(text.length)
    const nul = text.indexOf('\0')
    if (nul >= 0)
      throw this.refuse(`${found} with NUL (U+0000) at ${nul}`, 'remove it, or encode the data as base64')
    const half = text.search(/\p{Surrogate}/u)
    if (half < 0) return
    const remedy = 'cut text between characters, not inside one'
    throw this.refuse(`${found} with half of a character (a lone surrogate) at ${half}`, remedy)
  }

  #spend(bytes: number): void {
    this.#left -= bytes
    if (this.#left >= 0) return
    this.verdict = tooLarge(this.#options, `more than ${describeBytes(this.#options.maxBytes)}`)
    throw this.verdict
  }

  #refuseCycle(depth: number): RowlockError {
    const from = this.#options.what === 'metadata' ? depth + 1 : depth
    const target = pathText(this.#keys.slice(0, from))
    const back = target === '' ? `the ${this.#options.what} itself` : target
    return this.refuse(`a cycle, back to ${back}`, 'pass the id of what it refers to')
  }
}

/** What an object is that is neither an array nor plain, and what to pass in its place. */
function foreign(value: object): [found: string, remedy: string] {
  if (types.isMap(value)) return ['a Map', 'pass Object.fromEntries(map)']
  if (types.isSet(value)) return ['a Set', 'pass [...set]']
  if (types.isRegExp(value)) return ['a RegExp', 'pass its source as a string']
  if (types.isNativeError(value)) return ['an Error', 'pass { message: error.message }']
  if (types.isPromise(value)) return ['a Promise', 'await it first']
  if (types.isBoxedPrimitive(value)) return ['a boxed primitive', 'pass its valueOf()']
  const name = peek(peek(Object.getPrototypeOf(value), 'constructor'), 'name')
  const shown =
    typeof name === 'string' && name !== ''
      ? `an instance of ${storableText(name, 80)}`
      : 'an instance of a class'
  return [shown, 'pass a plain object, or give its class a toJSON method']
}
