// Addresses with several hosts, as libpq takes them and node-postgres does not.

import { expect, test } from 'vitest'
import { createRowlock } from '../../src/index.ts'

const refusal = (connectionString: string) => {
  try {
    createRowlock({ connectionString })
    return undefined
  } catch (error) {
    return error
  }
}

test.each([
  'postgres://db-a,db-b/shop',
  'postgres://db-a:5432,db-b:5432/shop',
  'postgresql://app:secret@db-a,db-b:5432/shop?target_session_attrs=read-write',
  'postgres:///shop?host=db-a,db-b',
  'postgres://app@/shop?port=5432&host=db-a%2Cdb-b',
])('several hosts are refused, with what to do instead: %s', (connectionString) => {
  const error = refusal(connectionString)
  expect(error).toMatchObject({ code: 'INVALID_OPTION', path: 'connectionString' })
  expect((error as Error).message).toMatch(/several hosts.*follows the primary/)
  expect((error as Error).message).not.toContain('secret')
})

test.each([
  'postgres://app:a,b@db/shop',
  'postgres://app:a,b%2C@db:5432/shop?options=a,b',
  'postgres://db/shop,too',
  'postgres:///shop?host=/var/run/postgresql',
  'postgres://[::1]:5432/shop',
])('one host is taken, wherever else a comma stands: %s', (connectionString) => {
  expect(refusal(connectionString)).toBeUndefined()
})
