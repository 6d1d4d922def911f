// Values as they are typed: numbers, ids, instants, words from a list. Each wrong one is told the nearest right one.

import { type Argument, InvalidArgumentError, type Option } from 'commander'
import { LIMITS } from '../ground/limits.ts'
import { suggest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import { instantOf, lengthMs } from './length.ts'

/** A whole number within bounds. */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const n = Number(text)
    if (/^[-+]?\d+$/.test(text) && n >= min && n <= max) return n
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max.toLocaleString('en')}.`)
  }

const LAST_ID = 2n ** 63n - 1n

/** The text of an id, or undefined when it is none. */
export function idOf(value: unknown): string | undefined {
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
  return typeof text === 'string' && /^[1-9]\d{0,18}$/.test(text) && BigInt(text) <= LAST_ID
    ? text
    : undefined
}

/** What is wrong with it. */
export function wrongId(text: string): string {
  const is =
    /^\d+$/.test(text) && !/^0+$/.test(text)
      ? `at most ${LAST_ID}, without zeros before it`
      : 'a number above 0'
  return `an id is ${is}; got ${show(text, 40)}`
}

/** The id of something: digits. */
export function id(text: string): string {
  const found = idOf(text)
  if (found !== undefined) return found
  throw new InvalidArgumentError(`${wrongId(text)}.`.replace(/^./, (letter) => letter.toUpperCase()))
}

/** One of these words. */
export function word<Word extends string>(text: string, known: readonly Word[]): Word {
  if ((known as readonly string[]).includes(text)) return text as Word
  const begun = text === '' ? [] : known.filter((each) => each.startsWith(text.toLowerCase()))
  if (begun.length === 1) throw new InvalidArgumentError(`Did you mean '${begun[0]}'?`)
  throw new InvalidArgumentError(suggest(text, known).replace(/^./, (letter) => letter.toUpperCase()))
}

/** An option or argument that reads its value itself, and whose words completion knows. */
export function withWords<Taker extends Option | Argument>(
  taker: Taker,
  words: readonly (string | number)[],
  read: (text: string) => unknown,
): Taker {
  taker.argParser(read as never)
  taker.argChoices = words.map(String)
  return taker
}

/** A length of time, as `30s`. Unit: ms. */
export function length(text: string): number {
  const ms = lengthMs(text)
  if (ms !== undefined && ms <= LIMITS.delayMs.max) return Math.round(ms)
  throw new InvalidArgumentError(
    "It must be a length of time with its unit, such as '30s', '10m' or '2 hours'.",
  )
}

/** An instant in ISO form, or as an age: `2h` is two hours before now, `+2h` two hours from now. */
export function when(text: string): Date {
  const [, sign, age = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  const ms = lengthMs(age)
  if (ms !== undefined && ms <= LIMITS.delayMs.max) return new Date(Date.now() + (sign === '+' ? ms : -ms))
  const at = instantOf(text) ?? (/^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Number.NaN))
  if (!Number.isNaN(at.getTime())) return at
  throw new InvalidArgumentError(
    'It must be an instant such as 2026-01-31T04:00Z, or an age such as 30m, 2h or 7d (+2h: from now).',
  )
}

/** A JSON object. */
export function object(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // The same answer for what is no JSON at all.
  }
  throw new InvalidArgumentError(`It must be a JSON object such as '{"order":42}'; got ${show(text, 40)}.`)
}

/** For options that may be given several times: one value stands alone, several are a list. */
export const oneOrMore =
  <Value>(read: (text: string) => Value) =>
  (text: string, before?: Value | readonly Value[]): Value | readonly Value[] => {
    const value = read(text)
    if (before === undefined) return value
    return [...(Array.isArray(before) ? (before as readonly Value[]) : [before as Value]), value]
  }
