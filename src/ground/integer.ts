// Whole numbers within bounds: priorities, attempts, counts.
import { RowlockError } from './errors.ts'
import { show } from './show.ts'

/**
 * Check that a value is a whole number within bounds, and return it.
 *
 * Errors: INVALID_OPTION, with `name` as path. A number in a string is refused, not converted.
 */
export function checkInteger(
  value: unknown,
  bounds: { readonly name: string; readonly min?: number; readonly max?: number },
): number {
  const { name, min = 0, max = Number.MAX_SAFE_INTEGER } = bounds
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value + 0
  throw new RowlockError(
    'INVALID_OPTION',
    `${name} must be a whole number from ${min} to ${max}; got ${show(value)}.`,
    { path: name },
  )
}
