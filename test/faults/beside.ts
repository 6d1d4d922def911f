// What the tests of guards stand on: a database with one worker played by hand, beside it a session that holds rows,
// and one that waits for nobody. Fresh for each test of the file that says `prepare`.

import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type Hand, type Reply, register } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

export let db: TestRowlock
export let hand: Hand
/** Holds what others want. */
export let other: pg.Client
/** Gives up a lock after 100 ms. */
export let impatient: pg.Client

const TABLES =
  'waiting running finished dead_letter attempt payload dedupe cancel_request queue worker sleeper audit'

/** Once in a file of tests. */
export function prepare(): void {
  beforeAll(async () => {
    db = await rowlockDatabase('guards')
    ;[other, impatient] = [await db.session(), await db.session()]
    await impatient.query(`set lock_timeout = '100ms'`)
  })
  beforeEach(async () => {
    const deletes = TABLES.split(' ').map((table) => `delete from rowlock.${table}`)
    await db.sql(deletes.join(';'))
    hand = await register(db)
  })
  afterEach(() => other.query('rollback'))
  afterAll(() => db.drop())
}

/** What one expression of SQL answers. */
export async function call(
  text: string,
  values: unknown[] = [],
  through: { query: pg.Pool['query'] } = db.pool,
): Promise<any> {
  return (await through.query(`select ${text} as reply`, values)).rows[0].reply
}

export const claimAll = (kinds = ['k'], session: pg.Client | pg.Pool = db.pool): Promise<Reply> =>
  hand.claim({ kinds }, session)
