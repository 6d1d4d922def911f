import { expect, test } from 'vitest'
import { ERRORS } from '../../src/ground/errors.ts'
import { filesOf, read } from '../support/tree.ts'

const FUNCTIONS = filesOf('sql/functions', '.sql')
/** The single-quoted strings of a SQL text, comments and function bodies' quotes left out. */
function stringsOf(sql: string): string[] {
  return [...sql.replace(/--.*$/gm, '').matchAll(/'((?:[^']|'')*)'/g)].map(([, text]) => text!)
}

const nameOf = (path: string): string => path.replace(/^.*\/|\.sql$/g, '')

test('a file of sql/functions holds one function, and is called as it', () => {
  const wrong = FUNCTIONS.filter((path) => {
    const made = [...read(path).matchAll(/^create or replace function rowlock\.(\w+)/gm)].map(
      ([, name]) => name,
    )
    return made.length !== 1 || made[0] !== nameOf(path)
  })
  expect(wrong).toEqual([])
})

test('every function begins with what it does', () => {
  expect(FUNCTIONS.filter((path) => !read(path).startsWith('-- '))).toEqual([])
})

test('every function but the clock has a fixed search path, or is one expression without names', () => {
  const bare = FUNCTIONS.filter((path) => !read(path).includes('set search_path = pg_catalog, pg_temp'))
  expect(bare.map(nameOf)).toEqual(['error_line', 'length_ms', 'ms', 'now'])
})

test('no string holds the name of the schema, except where it is rendered as a literal', () => {
  const wrong = [...FUNCTIONS, ...filesOf('sql/migrations', '.sql'), ...filesOf('sql/views', '.sql')].flatMap(
    (path) =>
      stringsOf(read(path))
        .filter((text) => /\browlock\./.test(text) && !/^rowlock\.\w+$/.test(text))
        .map((text) => `${path}: ${text}`),
  )
  expect(wrong).toEqual([])
})

test('no table has a foreign key, a trigger or a GIN index', () => {
  const text = filesOf('sql/migrations', '.sql')
    .map(read)
    .join('\n')
    .replace(/^\s*--.*$/gm, '')
  expect(text).not.toMatch(/\breferences\b|\bforeign key\b|\bcreate trigger\b|\busing gin\b/i)
})

test('constraints and indexes have names of their own', () => {
  const text = filesOf('sql/migrations', '.sql').map(read).join('\n')
  const unnamed = text
    .replace(/constraint \w+\s+(primary key|unique|check)/g, '')
    .split('\n')
    .filter((line) => !line.startsWith('--') && /\b(primary key|unique|check)\b/.test(line))
  expect(unnamed).toEqual([])
})

test('instants are timestamptz, ids bigint, states text', () => {
  const text = filesOf('sql/migrations', '.sql')
    .map(read)
    .join('\n')
    .replace(/^\s*--.*$/gm, '')
  expect(text).not.toMatch(/\btimestamp\b(?!tz)|\bserial\b|\bcreate type\b/i)
  expect(
    [...text.matchAll(/^\s+(id|job_id|retried_from) (\w+)/gm)].filter(
      ([, , type]) => !['bigint', 'uuid'].includes(type!),
    ),
  ).toEqual([])
})

test('SQL raises only codes that the table of errors has', () => {
  const known = new Set<string>(Object.values(ERRORS).map(({ sqlstate }) => sqlstate))
  const raised = FUNCTIONS.flatMap((path) =>
    [...read(path).matchAll(/'(RL\d{3})'/g)].map(([, code]) => code!),
  )
  expect(raised.length).toBeGreaterThan(20)
  expect(raised.filter((code) => !known.has(code))).toEqual([])
})

test('the clock is read through one function', () => {
  const wrong = FUNCTIONS.filter(
    (path) => !['now', 'claim', 'measure', 'reap'].includes(nameOf(path)),
  ).filter((path) =>
    /\b(clock_timestamp|statement_timestamp|transaction_timestamp|current_timestamp)\b/.test(
      read(path).replace(/^\s*--.*$/gm, ''),
    ),
  )
  expect(wrong).toEqual([])
})
