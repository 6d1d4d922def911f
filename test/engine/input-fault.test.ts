// SQL and the client judge a value alike, to the byte and the level.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { toStorableJson } from '../../src/ground/json.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { checkKind } from '../../src/ground/names.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('input fault')
})
afterAll(() => db.drop())

const inSql = async (json: string, maxBytes = LIMITS.inputBytes.max): Promise<string | null> =>
  (await db.value('select rowlock.input_fault($1, $2::text::jsonb, $3)', ['input', json, maxBytes]))
    ?.sqlstate ?? null

function inClient(value: unknown, maxBytes = LIMITS.inputBytes.max): string | null {
  try {
    toStorableJson(value, { maxBytes, what: 'input' })
    return null
  } catch (error) {
    return (error as { sqlstate: string }).sqlstate
  }
}

const nested = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value, b: [] }
  return value
}

test.each([
  ['text at the limit', 'x'.repeat(998), 1_000],
  ['text beyond it', 'x'.repeat(999), 1_000],
  ['numbers, whose commas jsonb follows with blanks', Array.from({ length: 499 }, () => 1), 1_000],
  ['one number more', Array.from({ length: 500 }, () => 1), 1_000],
  [
    'strings with commas, colons, blanks, quotes and backslashes',
    Array.from({ length: 50 }, () => ', : "\\ '),
    801,
  ],
  ['the same, a byte too many', Array.from({ length: 50 }, () => ', : "\\ '), 800],
  ['objects', Array.from({ length: 60 }, (_, n) => ({ [`k${n}`]: { deep: true } })), 1_491],
])('%s', async (_, value, maxBytes) => {
  expect(await inSql(JSON.stringify(value), maxBytes)).toBe(inClient(value, maxBytes))
})

test('the size that decides is that of the client’s JSON, for a million bytes', async () => {
  const text = 'x'.repeat(LIMITS.inputBytes.max - 2)
  expect([await inSql(JSON.stringify(text)), inClient(text)]).toEqual([null, null])
  expect([await inSql(JSON.stringify(`${text}x`)), inClient(`${text}x`)]).toEqual(['RL003', 'RL003'])
})

test.each([LIMITS.inputDepth.max, LIMITS.inputDepth.max + 1])('a value of %i levels', async (levels) => {
  const value = nested(levels)
  expect(await inSql(JSON.stringify(value))).toBe(inClient(value))
})

test('brackets inside strings are no levels', async () => {
  expect(await inSql(JSON.stringify(['['.repeat(2_000), '"{'.repeat(600)]))).toBeNull()
})

test('a number that no double holds is refused; the largest double is not', async () => {
  expect(await inSql(`{"n": ${Number.MAX_VALUE}, "m": -1.7976931348623157e308}`)).toBeNull()
  expect(await inSql('{"n": 1e309}')).toBe('RL002')
  expect(await inSql(`["${'9'.repeat(400)}"]`)).toBeNull()
})

test('a few bytes of jsonb that print as megabytes are refused', async () => {
  const bomb = 'select rowlock.enqueue($1, (select jsonb_agg($2::text::jsonb) from generate_series(1, 220)))'
  expect(await db.refusal(bomb, ['k', '1e131071'])).toBe('RL003')
  expect(await db.refusal('select rowlock.enqueue($1, $2::text::jsonb)', ['k', '[1e1000]'])).toBe('RL002')
})

test('an input whose text is large lies in payload, however small its binary form', async () => {
  const input = JSON.stringify(Array.from({ length: 100 }, () => 1e300))
  const [{ id }] = await db.sql('select id from rowlock.enqueue($1, $2::text::jsonb)', ['k', input])
  expect(await db.value('select input is null from rowlock.waiting where id = $1', [id])).toBe(true)
  expect(await db.value('select input from rowlock.job where id = $1', [id])).toEqual(JSON.parse(input))
})

test('white space at the ends of a name is what JavaScript trims', async () => {
  for (let code = 1; code < 0xffff; code++) {
    const char = String.fromCharCode(code)
    if (char.trim() === '') expect(() => checkKind(`a${char}`)).toThrow()
  }
  const spaces = Array.from({ length: 0xffff }, (_, code) => String.fromCharCode(code)).filter(
    (char) => char > ' ' && char.trim() === '',
  )
  expect(spaces.length).toBeGreaterThan(15)
  const trimmed = await db.sql(
    'select rowlock.is_trimmed(s) as trimmed from jsonb_array_elements_text($1) as s',
    [JSON.stringify(spaces.map((char) => `a${char}`))],
  )
  expect(trimmed.filter((row) => row.trimmed)).toEqual([])
})
