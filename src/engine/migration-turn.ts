// One migrates a schema at a time, also through a transaction pooler; the others ask again.

import { quoteLiteral } from './schema.ts'
import type { PooledClient } from './seam.ts'

const SETTINGS = `
set local search_path = pg_catalog, pg_temp;
set local standard_conforming_strings = on;
set local lock_timeout = 0;
set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;
set local check_function_bodies = off;
set local client_min_messages = warning;
select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'`

/**
 * Run the body in a READ COMMITTED transaction that has the schema's turn, and commit.
 *
 * Why it asks instead of waiting in the lock: who waits in a statement holds a snapshot, and a concurrent index build,
 * run by the one whose turn it is, would wait for that snapshot for ever. For the same reason nothing here has
 * parameters: the portal of a statement with parameters keeps its snapshot until the next one.
 */
export async function takeTurn<T>(client: PooledClient, schema: string, body: () => Promise<T>): Promise<T> {
  const key = quoteLiteral(`rowlock migrate ${schema}`)
  for (;;) {
    await client.query('begin isolation level read committed read write')
    try {
      await client.query(SETTINGS)
      const { rows } = await client.query(
        `select pg_try_advisory_xact_lock(hashtextextended(${key}, 0)) as mine`,
      )
      if ((rows[0] as { mine: boolean }).mine) {
        const value = await body()
        await client.query('commit')
        return value
      }
      await client.query('rollback')
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80))
  }
}
