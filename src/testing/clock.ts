// Sets the clock of an installation, for tests: every verb reads the time from one function, which its owner may
// replace.

import type { Database } from '../engine/database.ts'
import { type Duration, durationMs, intervalText } from '../ground/duration.ts'
import { RowlockError } from '../ground/errors.ts'
import { databaseOf, type Rowlock } from '../rowlock.ts'

/** The clock of one installation. */
export interface TestClock {
  /** Stop the clock at this instant. */
  set(instant: Date): Promise<void>
  /** Let it jump; a stopped clock stays stopped, a running one goes on from there. */
  advance(by: Duration): Promise<void>
  /** Back to the database's own clock. */
  reset(): Promise<void>
}

/**
 * The clock of the installation that this client talks to. All its processes see it, so it belongs into a database that
 * is only for tests.
 *
 * Transaction: own. Errors: an error of the server when the role does not own the schema.
 */
export function testClock(rowlock: Rowlock): TestClock {
  const database = databaseOf(rowlock)
  const stopAt = (ms: number) => replaceNow(database, `timestamptz '${new Date(ms).toISOString()}'`)
  return {
    async set(instant) {
      const at = instant instanceof Date ? instant.getTime() : Number.NaN
      if (Number.isNaN(at)) {
        throw new RowlockError('INVALID_OPTION', 'set takes a valid Date', { path: 'instant' })
      }
      await stopAt(at)
    },
    async advance(by) {
      const ms = durationMs(by, { name: 'by', min: 0 })
      const { stoppedMs, shiftMs } = await readNow(database)
      if (stoppedMs !== undefined) return stopAt(stoppedMs + ms)
      await replaceNow(database, `pg_catalog.clock_timestamp() + interval '${intervalText(shiftMs + ms)}'`)
    },
    async reset() {
      await replaceNow(database, 'pg_catalog.clock_timestamp()')
    },
  }
}

/** How the clock stands, whoever set it: the database knows, in the text of its function. */
async function readNow(database: Database): Promise<{ stoppedMs?: number; shiftMs: number }> {
  const [row] = await database.query<{ source: string }>(
    `select p.prosrc as source from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname = $1 and p.proname = 'now'`,
    [database.schema],
  )
  const [, instant] = row?.source.match(/timestamptz '([^']+)'/) ?? []
  const [, seconds] = row?.source.match(/interval '([\d.]+)s'/) ?? []
  return {
    ...(instant !== undefined && { stoppedMs: Date.parse(instant) }),
    shiftMs: seconds === undefined ? 0 : Math.round(Number(seconds) * 1000),
  }
}

async function replaceNow(database: Database, expression: string): Promise<void> {
  await database.query(
    `create or replace function rowlock.now() returns timestamptz
     language sql volatile parallel safe as $now$ select ${expression} $now$`,
  )
}
