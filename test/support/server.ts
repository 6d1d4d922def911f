// A database of its own for each test file, on the server of the run. Empty, or a copy of a template.

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type {} from './global.ts'

/** A database that exists until it is dropped. */
export interface TestDatabase {
  /** How Rowlock gets to it: through the pooler of the run, when there is one (ROWLOCK_TEST_POOLER). */
  readonly url: string
  /** How a test gets to it that looks on, holds a row, or needs a session of its own. */
  readonly direct: string
  readonly name: string
  /** Drop it, ending whatever is still connected. */
  drop(): Promise<void>
}

/** The superuser's URL of the run's server, database `postgres`. */
export function adminUrl(): string {
  return inject('adminUrl')
}

/** Whether everything goes through PgBouncer in transaction mode: LISTEN is not heard then. */
export const isPooled = (): boolean => inject('poolerUrl') !== ''

/** Make a database. Its name starts with the given one and is unique, also on a server that runs share. */
export async function createDatabase(
  name = 'test',
  { template }: { readonly template?: string } = {},
): Promise<TestDatabase> {
  const stem = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
  const unique = `${stem.slice(0, 40)}_${randomBytes(5).toString('hex')}`
  const copied = template === undefined ? '' : ` template ${pg.escapeIdentifier(template)}`
  await administer(`create database ${unique}${copied}`)
  const within = (server: string) => Object.assign(new URL(server), { pathname: `/${unique}` }).href
  return {
    url: within(isPooled() ? inject('poolerUrl') : adminUrl()),
    direct: within(adminUrl()),
    name: unique,
    drop: () => administer(`drop database if exists ${unique} with (force)`),
  }
}

/** Run one statement as superuser in the database `postgres`. */
export async function administer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl() })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
