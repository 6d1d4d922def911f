import pg from 'pg'
import { expect, test } from 'vitest'
import { createDatabase } from '../support/server.ts'

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

test('a test database can be copied from a template', async () => {
  const template = await createDatabase('template')
  await query(template.url, 'create table boat as select 1 as seats')
  const copy = await createDatabase('copy', { template: template.name })
  expect(await query(copy.url, 'select seats from boat')).toEqual([{ seats: 1 }])
  await copy.drop()
  await template.drop()
  await expect(query(copy.url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
})
