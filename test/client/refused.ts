// The error that a call is refused with.

import type { RowlockError } from '../../src/index.ts'

/** Wait for the refusal, and return it. */
export async function failure(work: Promise<unknown>): Promise<RowlockError> {
  const outcome = await work.then(
    (value) => ({ value }),
    (error: RowlockError) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error(`it was not refused: ${JSON.stringify(outcome)}`)
}
