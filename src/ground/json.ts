// What can be stored in jsonb and read back as it was. This file is the fast way for values that are plainly so;
// `storable.ts` is the judge of all others, and says what is wrong with them.
import { LIMITS } from './limits.ts'
import { describeBytes } from './size.ts'
import { type StoredAs, storableCopy, tooLarge } from './storable.ts'

/** JSON that PostgreSQL takes as jsonb, and its size in UTF-8. */
export interface StorableJson {
  readonly json: string
  readonly bytes: number
}

/**
 * How JSON.stringify writes NUL and half of a surrogate pair. Written by hand, the same text has its backslash
 * doubled.
 */
const SUSPECT = /\\u(?:0000|d[89a-f])/
const UNSURE = -1

/**
 * Turn a value into JSON that jsonb stores faithfully, or refuse it with the path of the first fault.
 *
 * Shape, accepted: null, booleans, finite numbers (−0 becomes 0), strings, arrays, plain objects (own enumerable
 * string keys, `__proto__` like any other), valid dates (as ISO strings), and objects with `toJSON`, which is called
 * once and its result judged in turn. A property whose value is undefined is left out, as JSON does; symbol keys and
 * named properties of arrays are not seen.
 * Shape, refused: undefined at the top or in an array, holes, NaN, ±Infinity, BigInt (also when somebody gave it a
 * `toJSON`), functions, symbols, boxed primitives, invalid dates, Map, Set, RegExp, Error, Buffer and other binary
 * data, instances of classes, strings or keys with NUL or a lone surrogate, cycles, more than 500 levels, and whatever
 * throws when it is read. The same object twice is fine when it is no cycle.
 * Unit: `maxBytes` of the JSON in UTF-8.
 * Errors: INPUT_NOT_STORABLE with `path` (empty for the value itself); INPUT_TOO_LARGE.
 */
export function toStorableJson(
  value: unknown,
  options: { readonly maxBytes: number; readonly what: StoredAs },
): StorableJson {
  const json = quickly(value, options.maxBytes) ?? JSON.stringify(storableCopy(value, options))
  const bytes = Buffer.byteLength(json)
  if (bytes > options.maxBytes) throw tooLarge(options, describeBytes(bytes))
  return { json, bytes }
}

/** The JSON of a value that is beyond doubt; undefined for one that must be looked at closely. */
function quickly(value: unknown, maxBytes: number): string | undefined {
  try {
    if (walk(value, LIMITS.inputDepth.max, maxBytes) < 0) return undefined
    const json = JSON.stringify(value)
    // Most JSON has no \u at all, and includes() finds that out many times faster than the pattern does.
    return json.includes('\\u') && SUSPECT.test(json) ? undefined : json
  } catch {
    return undefined
  }
}

/**
 * Walk a value without allocating anything. `left` is how many bytes of JSON may still come, counted from below, so
 * that a small graph which unfolds into gigabytes is left early. Returns what is left then, or less than 0: unsure.
 */
function walk(value: unknown, levels: number, left: number): number {
  switch (typeof value) {
    case 'string':
      return left - value.length
    case 'number':
      return Number.isFinite(value) ? left - 1 : UNSURE
    case 'boolean':
      return left - 1
    case 'object':
      if (value === null) return left - 1
      if (levels === 0) return UNSURE
      return Array.isArray(value) ? walkArray(value, levels, left) : walkObject(value, levels, left)
    default:
      return UNSURE
  }
}

function walkArray(value: readonly unknown[], levels: number, left: number): number {
  if ((value as { toJSON?: unknown }).toJSON !== undefined) return UNSURE
  let rest = left - 1
  for (let i = 0; i < value.length && rest >= 0; i++) rest = walk(value[i], levels - 1, rest)
  return rest
}

function walkObject(value: object, levels: number, left: number): number {
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    const isPlainDate = prototype === Date.prototype && Number.isFinite((value as Date).getTime())
    return isPlainDate ? left - 1 : UNSURE
  }
  if ((value as { toJSON?: unknown }).toJSON !== undefined) return UNSURE
  let rest = left - 1
  // Also lists what somebody added to Object.prototype; then a value is at worst looked at twice.
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key]
    if (item === undefined) continue
    rest = walk(item, levels - 1, rest - key.length)
    if (rest < 0) return UNSURE
  }
  return rest
}
