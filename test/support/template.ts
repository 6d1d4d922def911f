// A database with Rowlock in it, made once a run; each test file gets a copy in some 35 ms.

import pg from 'pg'
import { Database } from '../../src/engine/database.ts'
import { migrate } from '../../src/engine/migrate.ts'

/** ROWLOCK_TEST_TEMPLATE names one that is there already: with a guard taken out, say. */
export const TEMPLATE = process.env.ROWLOCK_TEST_TEMPLATE || 'rowlock_test_template'

export async function makeTemplate(adminUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl })
  await client.connect()
  await client.query(`drop database if exists ${TEMPLATE} with (force)`)
  await client.query(`create database ${TEMPLATE}`)
  await client.end()
  const url = new URL(adminUrl)
  url.pathname = `/${TEMPLATE}`
  const database = new Database({ connectionString: url.href })
  await migrate(database)
  await database.close()
}
