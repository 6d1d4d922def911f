// Every mutant there is.

import { FAILOVER_GUARDS } from './failover.ts'
import type { Mutant } from './mutant.ts'
import { SESSION_GUARDS } from './session.ts'
import { BULK_GUARDS } from './sql-bulk.ts'
import { CLAIM_GUARDS } from './sql-claim.ts'
import { END_GUARDS } from './sql-end.ts'
import { FULL_GUARDS } from './sql-full.ts'
import { LEASE_GUARDS } from './sql-lease.ts'
import { LIMITS_GUARDS } from './sql-limits.ts'
import { LOOKS_GUARDS } from './sql-looks.ts'
import { OPERATORS_GUARDS } from './sql-operators.ts'
import { STORE_GUARDS } from './sql-store.ts'
import { TYPESCRIPT_GUARDS } from './typescript.ts'

export const MUTANTS: readonly Mutant[] = [
  ...CLAIM_GUARDS,
  ...STORE_GUARDS,
  ...FULL_GUARDS,
  ...END_GUARDS,
  ...LEASE_GUARDS,
  ...LIMITS_GUARDS,
  ...OPERATORS_GUARDS,
  ...BULK_GUARDS,
  ...LOOKS_GUARDS,
  ...TYPESCRIPT_GUARDS,
  ...SESSION_GUARDS,
  ...FAILOVER_GUARDS,
]
