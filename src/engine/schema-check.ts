// Before a worker starts: is the schema one that this release can work with?

import { RowlockError } from '../ground/errors.ts'
import type { Database } from './database.ts'
import { isNewer, RELEASE } from './release.ts'
import { MIGRATIONS, ROUTINES } from './sql.generated.ts'

/**
 * Is the schema one that this release can work with? A newer one that breaks nothing is: workers are rolled one by one.
 *
 * Errors: SCHEMA_MISSING; SCHEMA_OUTDATED when a migration or a function is older than this release's; SCHEMA_NEWER
 * when a newer release has applied one that breaks this.
 */
export async function checkSchemaVersion(database: Database): Promise<void> {
  const rows = await database.query<{ number: number; name: string; breaking: boolean; release: string }>(
    'select number, name, breaking, release from rowlock.migration order by number',
  )
  const known = new Set(MIGRATIONS.map(({ number }) => number))
  const breaking = rows.find((row) => row.breaking && !known.has(row.number))
  if (breaking !== undefined) {
    throw new RowlockError(
      'SCHEMA_NEWER',
      `The schema was migrated by release ${breaking.release} (${breaking.number}_${breaking.name}), which ` +
        `release ${RELEASE} cannot work with: upgrade this process.`,
    )
  }
  const applied = new Set(rows.map(({ number }) => number))
  const missing = MIGRATIONS.find(({ number }) => !applied.has(number))
  if (missing !== undefined) {
    throw new RowlockError(
      'SCHEMA_OUTDATED',
      `The schema lacks migration ${missing.number}_${missing.name} of release ${RELEASE}: run \`rowlock migrate\`.`,
    )
  }
  const routines = await database.query<{ name: string; hash: string; release: string }>(
    'select name, hash, release from rowlock.routine',
  )
  const there = new Map(routines.map((row) => [row.name, row]))
  const older = ROUTINES.find(({ name, hash }) => {
    const row = there.get(name)
    return row === undefined || (row.hash !== hash && !isNewer(row.release, RELEASE))
  })
  if (older !== undefined) {
    throw new RowlockError(
      'SCHEMA_OUTDATED',
      `The schema's function ${older.name} is older than that of release ${RELEASE}: run \`rowlock migrate\`.`,
    )
  }
}
