// Retention: drops whole days of history that are older than their class keeps them.

import type { Database } from './database.ts'
import { quoteIdentifier } from './schema.ts'
import type { PooledClient } from './seam.ts'
import { isConnectionError } from './translate.ts'

interface Due {
  readonly parent: 'finished' | 'attempt'
  readonly day: string
  /** Left behind by a drop that was interrupted. */
  readonly detached: boolean
}

const PAYLOAD_BATCH = 1_000
const LOCK_TIMEOUT = '100ms'
const BUSY = new Set(['55P03', '40P01'])
const NOT_OWNER = '42501'

/**
 * Drop the days that are due, and answer their names. One that is in use is left for the next round.
 *
 * Transaction: none may be open; a detach without waiting writers runs at top level only. Behind a transaction pooler
 * (`isPooled`) a setting of the session could reach a stranger, so there the detach is an ordinary one, given up after
 * 100 ms. So it is for a role that does not own the tables, by the verb that does it for such roles.
 * Source: sql/functions/days_due.sql, sql/functions/drop_day.sql
 */
export async function dropDueDays(database: Database, isPooled: boolean): Promise<string[]> {
  const due = await database.query<Due>('select parent, day, detached from rowlock.days_due()')
  const dropped: string[] = []
  for (const each of due) {
    try {
      await dropDay(database, each, isPooled)
      dropped.push(each.day)
    } catch (error) {
      if (!BUSY.has(String((error as { code?: unknown }).code))) throw error
    }
  }
  return dropped
}

async function dropDay(database: Database, due: Due, isPooled: boolean): Promise<void> {
  try {
    if (due.parent === 'finished') await dropPayloads(database, due.day)
    await detach(database, due, isPooled)
    await drop(database, due.day)
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_OWNER) throw error
    for (let after: string | null = '0'; after !== null; ) {
      after = await database.call<string | null>('drop_day', '$1::text, $2::text::bigint', [due.day, after])
    }
  }
}

/**
 * Inputs of that day that lie in payload go first, in small steps: without their day nobody could find them. Each step
 * goes on behind the last id of the one before.
 */
async function dropPayloads(database: Database, day: string): Promise<void> {
  for (let last: string | null = '0'; last !== null; ) {
    const [row]: { last: string | null }[] = await database.query(
      `with step as materialized (
         select f.id from rowlock.${quoteIdentifier(day)} f
          where f.input is null and f.id > $1::text::bigint
          order by f.id
          limit ${PAYLOAD_BATCH}
       ), gone as (
         delete from rowlock.payload p where p.job_id = any (array(select s.id from step s))
       )
       select max(s.id)::text as last from step s`,
      [last],
    )
    last = row?.last ?? null
  }
}

async function detach(database: Database, { parent, day, detached }: Due, isPooled: boolean): Promise<void> {
  const table = `alter table rowlock.${parent} detach partition rowlock.${quoteIdentifier(day)}`
  if (isPooled) {
    if (detached) return
    await database.transaction(async (client) => {
      await database.queryOn(client, `set local lock_timeout = '${LOCK_TIMEOUT}'`)
      await database.queryOn(client, table)
    })
    return
  }
  await database.use(async (client) => {
    const [row] = (await database.queryOn(
      client,
      `select i.inhdetachpending as pending from pg_inherits i
         join pg_class c on c.oid = i.inhrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relname = $2`,
      [database.schema, day],
    )) as { pending: boolean }[]
    if (row === undefined) return
    const how = row.pending ? 'finalize' : 'concurrently'
    await withLockTimeout(database, client, () => database.queryOn(client, `${table} ${how}`))
  })
}

async function drop(database: Database, day: string): Promise<void> {
  await database.transaction(async (client) => {
    await database.queryOn(client, `set local lock_timeout = '${LOCK_TIMEOUT}'`)
    await database.queryOn(client, `drop table if exists rowlock.${quoteIdentifier(day)}`)
  })
}

async function withLockTimeout(
  database: Database,
  client: PooledClient,
  body: () => Promise<unknown>,
): Promise<void> {
  await database.queryOn(client, `set lock_timeout = '${LOCK_TIMEOUT}'`)
  try {
    await body()
  } catch (error) {
    if (!isConnectionError(error)) await database.queryOn(client, 'reset lock_timeout')
    throw error
  }
  await database.queryOn(client, 'reset lock_timeout')
}
