// Who did something, and why: said with every verb of an operator, and kept in the audit.

import { RowlockError } from '../ground/errors.ts'
import { checkOptions } from '../ground/nearest.ts'
import { isStorableText } from '../ground/text.ts'

/** Who did it, and why; kept where it can be read later. */
export interface Operator {
  readonly actor?: string | undefined
  readonly reason?: string | undefined
}

/** Check who did it, and why; `more` are options that the verb knows besides. Errors: INVALID_OPTION. */
export function checkOperator<T extends Operator>(operator: T, more: readonly string[] = []): T {
  checkOptions(operator, ['actor', 'reason', ...more], 'the operator')
  for (const name of ['actor', 'reason'] as const) {
    const value = operator[name]
    if (value !== undefined && (typeof value !== 'string' || !isStorableText(value))) {
      throw new RowlockError('INVALID_OPTION', `${name} must be text`, { path: name })
    }
  }
  return operator
}
