// Sets the clock of an installation, for tests: every verb reads the time from one function, which its owner may
// replace.

import type { Database } from '../engine/database.ts'
import { type Duration, durationMs, intervalText } from '../ground/duration.ts'
import { RowlockError } from '../ground/errors.ts'
import { databaseOf, type Rowlock } from '../rowlock.ts'

/** How the clock was last set, through any handle of the same client. */
const STATES = new WeakMap<Database, { stopped: number | undefined; shiftMs: number }>()

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
  const state = STATES.get(database) ?? { stopped: undefined, shiftMs: 0 }
  STATES.set(database, state)
  return {
    async set(instant) {
      const at = instant instanceof Date ? instant.getTime() : Number.NaN
      if (Number.isNaN(at))
        throw new RowlockError('INVALID_OPTION', 'set takes a valid Date', { path: 'instant' })
      state.stopped = at
      await replaceNow(database, `timestamptz '${new Date(at).toISOString()}'`)
    },
    async advance(by) {
      const ms = durationMs(by, { name: 'by', min: 0 })
      if (state.stopped === undefined) {
        state.shiftMs += ms
        await replaceNow(database, `pg_catalog.clock_timestamp() + interval '${intervalText(state.shiftMs)}'`)
      } else {
        await this.set(new Date(state.stopped + ms))
      }
    },
    async reset() {
      state.stopped = undefined
      state.shiftMs = 0
      await replaceNow(database, 'pg_catalog.clock_timestamp()')
    },
  }
}

async function replaceNow(database: Database, expression: string): Promise<void> {
  await database.query(
    `create or replace function rowlock.now() returns timestamptz
     language sql volatile parallel safe as $now$ select ${expression} $now$`,
  )
}
