// The id of a job, as text: bigint goes beyond what a number holds.
import { RowlockError } from './errors.ts'
import { show } from './show.ts'

/** Check the id of a job: a string of digits, above 0 and below 2⁶³. Errors: INVALID_OPTION. */
export function checkId(id: unknown, path = 'id'): string {
  if (typeof id === 'string' && /^[1-9]\d{0,18}$/.test(id) && BigInt(id) < 2n ** 63n) return id
  const message = `a job's id is a string of digits; got ${show(id, 40)}`
  throw new RowlockError('INVALID_OPTION', message, { path })
}
