// What most tests stand on: a migrated database of their own, and plain SQL in it.

import pg from 'pg'
import { Database } from '../../src/engine/database.ts'
import { createDatabase } from './server.ts'
import { TEMPLATE } from './template.ts'

/** A database with Rowlock in it, gone after the test file. */
export interface TestRowlock {
  /** How Rowlock gets to it; through the pooler of the run, when there is one. */
  readonly url: string
  /** How a test gets to it that looks at sessions, or needs one of its own. */
  readonly direct: string
  readonly database: Database
  readonly pool: pg.Pool
  /** Run SQL as the owner and get the rows. */
  sql<Row = any>(text: string, values?: unknown[]): Promise<Row[]>
  /** The one value of the one row. */
  value<T = any>(text: string, values?: unknown[]): Promise<T>
  /** The SQLSTATE that a statement is refused with, or null when it is not. */
  refusal(text: string, values?: unknown[]): Promise<string | null>
  /** A direct connection of its own, for transactions. Ended with the database. */
  session(): Promise<pg.Client>
  drop(): Promise<void>
}

export async function rowlockDatabase(name = 'test'): Promise<TestRowlock> {
  const { url, direct, drop } = await createDatabase(name, { template: TEMPLATE })
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  pool.on('error', () => {})
  const database = new Database({ connectionString: url })
  const sessions: pg.Client[] = []
  const sql = async (text: string, values?: unknown[]) => (await pool.query(text, values as any[])).rows
  return {
    url,
    direct,
    database,
    pool,
    sql,
    async value(text, values) {
      const [row] = await sql(text, values)
      return row === undefined ? undefined : (Object.values(row)[0] as any)
    },
    async refusal(text, values) {
      try {
        await sql(text, values)
        return null
      } catch (error) {
        return String((error as { code?: unknown }).code)
      }
    },
    async session() {
      const client = new pg.Client({ connectionString: direct })
      client.on('error', () => {})
      await client.connect()
      sessions.push(client)
      return client
    },
    async drop() {
      await Promise.all(sessions.map((client) => client.end().catch(() => {})))
      await database.close()
      await pool.end()
      await drop()
    },
  }
}
