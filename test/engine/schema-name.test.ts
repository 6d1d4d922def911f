// Under any name: a schema is called what its owner likes, and its jobs live their life.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkSchema } from '../../src/engine/schema.ts'
import { createRowlock } from '../../src/index.ts'
import { type Ground, ground, life } from '../support/ground.ts'

const NAMES = [
  'Jobs',
  'jobs',
  'my-jobs',
  'select',
  '1a',
  'a b',
  'a"b',
  "o'brien",
  'a$$b',
  'a$rowlock$b',
  '$rowlock$',
  'x.job',
  'rowlock.x',
  'a\\b',
  "a\\'b",
  'schéma',
  'é'.repeat(31),
  'x'.repeat(63),
  '🚣 jobs',
  'a:b %s %I',
]

describe('a schema may be called', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('names')
  })
  afterAll(() => at.drop())

  test.each(NAMES)('%s', async (schema) => {
    const rowlock = at.client({ schema })
    await rowlock.migrate()
    await life(rowlock)
    expect(await rowlock.migrate()).toEqual({ applied: [], replaced: [] })
    const [row] = await at.sql(
      `select count(*)::integer as tables from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relname = 'waiting'`,
      [schema],
    )
    expect(row).toEqual({ tables: 1 })
  })

  test('no schema was made but those', async () => {
    const found = await at.sql(`select nspname as name from pg_namespace where nspname !~ '^pg_' order by 1`)
    const others = ['information_schema', 'public']
    expect(found.map(({ name }) => name).sort()).toEqual([...NAMES, ...others].sort())
  })
})

test.each([
  ['64 bytes', 'x'.repeat(64)],
  ['64 bytes in 32 letters', 'é'.repeat(32)],
  ['a newline', 'a\nb'],
  ['NUL', 'a\0b'],
  ['half of a character', '\ud83d'],
  ['nothing', ''],
  ['what PostgreSQL keeps for itself', 'pg_jobs'],
  ['the same in capitals', 'PG_jobs'],
  ['a number', 5],
])('a schema called by %s is refused before any SQL', (_, name) => {
  expect(() => checkSchema(name)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', path: 'schema' }))
  const away = 'postgres://127.0.0.1:1/nowhere'
  expect(() => createRowlock({ connectionString: away, schema: name as string })).toThrow(/schema/)
})
