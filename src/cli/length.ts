// Lengths of time as people write them in files and on the command line: `30s`, `1.5h`, `10 minutes`, `1 hour 30 min`.

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(ms|millis|milliseconds?)$/, 1],
  [/^(s|secs?|seconds?)$/, 1_000],
  [/^(m|mins?|minutes?)$/, 60_000],
  [/^(h|hours?)$/, 3_600_000],
  [/^(d|days?)$/, 86_400_000],
  [/^(w|weeks?)$/, 604_800_000],
]
const WHOLE = /^(?:\d+(?:\.\d+)? ?[a-z]+(?: |$)?)+$/i

/** A length in ms, or undefined when it is none. Months and years have no length of their own. */
export function lengthMs(text: string): number | undefined {
  if (text.length > 100 || !WHOLE.test(text)) return undefined
  let sum = 0
  for (const [, digits, word] of text.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)) {
    const unit = UNITS.find(([words]) => words.test(word!.toLowerCase()))
    if (unit === undefined) return undefined
    sum += Number(digits) * unit[1]
  }
  return sum
}

/** An instant with its zone, or undefined. */
export function instantOf(text: string): Date | undefined {
  const shape = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)$/i
  if (!shape.test(text)) return undefined
  const written = text
    .replace(' ', 'T')
    .replace(/([+-]\d\d)(\d\d)?$/, (_, hours, minutes) => `${hours}:${minutes ?? '00'}`)
  const at = new Date(written)
  return Number.isNaN(at.getTime()) ? undefined : at
}
