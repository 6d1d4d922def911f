// "Did you mean": the known word nearest to an unknown one, and the check of option names that uses it.
import { RowlockError } from './errors.ts'
import { isPlainObject } from './plain.ts'
import { show } from './show.ts'

const LONGEST = 64

/**
 * The known word that an unknown one was probably meant to be, or undefined when none is near.
 *
 * Near means: one slip for words up to 4 letters, two up to 8, three above. Case is no slip.
 * Source: Damerau-Levenshtein distance, restricted (optimal string alignment): a swap of neighbours is one slip.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length === 0 || word.length > LONGEST) return undefined
  const slips = word.length <= 4 ? 1 : word.length <= 8 ? 2 : 3
  let best: string | undefined
  let least = slips + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) > slips) continue
    const distance = distanceOf(word.toLowerCase(), candidate.toLowerCase())
    if (distance < least) {
      best = candidate
      least = distance
    }
  }
  return best
}

function distanceOf(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) cost = Math.min(cost, beforeLast[j - 2]! + 1)
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

/** `did you mean 'x'?`, or the list of what is known. */
export function suggest(word: string, known: readonly string[]): string {
  const meant = nearest(word, known)
  return meant === undefined ? `known: ${known.join(', ')}` : `did you mean '${meant}'?`
}

/**
 * Check that options are a plain object with known names only. A name whose value is undefined counts as absent.
 *
 * Shape: `where` is said in the message (`defineJob`); `prefix` stands before the name in the error's path (`retry.`).
 * Errors: INVALID_OPTION, with the unknown name as path and the nearest known one in the message.
 */
export function checkOptions(options: unknown, known: readonly string[], where: string, prefix = ''): void {
  if (!isPlainObject(options)) {
    const path = prefix.replace(/\.$/, '')
    const message = `The options of ${where} must be a plain object; got ${show(options)}.`
    throw new RowlockError('INVALID_OPTION', message, path === '' ? {} : { path })
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name) || options[name] === undefined) continue
    throw new RowlockError(
      'INVALID_OPTION',
      `${where} has no option ${show(name)}; ${suggest(name, known)}`,
      { path: `${prefix}${name}` },
    )
  }
}
