// What a call refuses with, for tests of refusals.
import { isRowlockError, type RowlockError } from '../../src/ground/errors.ts'

/** The RowlockError that a call throws. Any other error goes through; with `may pass`, no error is undefined. */
export function refusal(call: () => unknown): RowlockError
export function refusal(call: () => unknown, lenient: 'may pass'): RowlockError | undefined
export function refusal(call: () => unknown, lenient?: 'may pass'): RowlockError | undefined {
  try {
    call()
  } catch (error) {
    if (isRowlockError(error)) return error
    throw error
  }
  if (lenient) return undefined
  throw new Error('it was not refused')
}
