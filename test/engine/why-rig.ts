// What the tests of `why` stand on: a database, a client, workers by hand, and sessions that end with the test.

import type pg from 'pg'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { createRowlock, type Reason, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, register as registerHand } from './by-hand.ts'

export let db: TestRowlock
export let rowlock: Rowlock

const TABLES = [
  'waiting',
  'running',
  'worker',
  'queue',
  'audit',
  'cancel_request',
  'attempt',
  'dedupe',
  'finished',
]
const opened: pg.Client[] = []

/** For the file that calls it: a database for all its tests, emptied after each. */
export function setUp(name: string): void {
  beforeAll(async () => {
    db = await rowlockDatabase(name)
    rowlock = createRowlock({ connectionString: db.url })
  })
  afterEach(async () => {
    // A transaction that a failed test left open would hold up the next one.
    await Promise.all(opened.splice(0).map((session) => session.end().catch(() => {})))
    const prepared = await db.sql('select gid from pg_prepared_xacts where database = current_database()')
    for (const { gid } of prepared) await db.sql(`rollback prepared '${gid}'`)
    await db.sql(TABLES.map((table) => `delete from rowlock.${table}`).join(';'))
  })
  afterAll(async () => {
    await rowlock.close()
    await db.drop()
  })
}

export const why = async (id: string): Promise<readonly Reason[]> => rowlock.why(id)
export const codes = async (id: string) => (await why(id)).map(({ reason }) => reason)
export const first = async (id: string) => (await why(id))[0]!

/** A worker by hand that serves these queues and kinds. */
export async function serve(
  queues: Record<string, object> = { default: { concurrency: 2 } },
  kinds = ['k'],
  name = 'w1',
): Promise<Hand> {
  const hand = await registerHand(db)
  const text = 'update rowlock.worker set queues = $2, kinds = $3, name = $4 where id = $1'
  await db.sql(text, [hand.id, queues, kinds, name])
  return hand
}
export const facts = (hand: Hand, more: object) =>
  db.sql(`select rowlock.heartbeat($1, '[]', $2)`, [hand.id, JSON.stringify(more)])

/** A session with a transaction open; ended with the test. */
export async function open(text?: string, values?: unknown[]): Promise<pg.Client> {
  const session = await db.session()
  opened.push(session)
  await session.query(`set application_name = 'reports'`)
  await session.query('begin')
  if (text !== undefined) await session.query(text, values)
  return session
}
export const pidOf = async (session: pg.Client) =>
  (await session.query('select pg_backend_pid() as pid')).rows[0].pid as number
