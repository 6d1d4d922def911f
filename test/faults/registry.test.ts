// The registry of faults: each known kind is there once, and each test that it names exists.

import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { REGISTRY } from '../../faults/registry.ts'
import { NOT_POOLED } from '../support/pooled.ts'
import { ROOT, read } from '../support/tree.ts'
import { hasTest, titlesIn, titlesOf } from './titles.ts'

/** The list, written here once more: an entry that goes from the registry is missed. */
const IDS = `
  A01 A02 A03 A04 A05 A06 A07 A08 A10 A11 A13 A14 A16 A17 A19 A20 A22 A23 B01 B02 B04 B05 B07 B08 B10
  B11 B13 B14 B16 B17 C01 C02 C03 C04 C05 C07 C08 C10 C11 C13 C14 C16 C17 C19 C20 D01 D02 D03 D04 D05
  D07 D08 D10 D11 D13 D14 D16 D17 D19 D20 E01 E02 E03 E04 E05 E07 E08 F01 F02 F03 F04 F05 F07 G01 G02
  G04 G05 G06 G07 G08 G10 G11 G13 G14 G16 G17 H01 H02 H04 H05 H07 H08 H10 H11 H13 H14 I01 I02 I04 I05
  I07 I08 I10 I11 I13 I14 I16 I17 I19 I20 J01 J02 J04 J05 J07 J08 J10 J11 J13 J14 J16 J17 J19 J20 K01
  K02 K04 K05 K07 K08
`
  .trim()
  .split(/\s+/)

/** `file › name`, of which the file or the name is not there. */
function missing(names: readonly string[]): string[] {
  return names.filter((full) => {
    const [file = '', ...name] = full.split(' › ')
    return !existsSync(ROOT + file) || !hasTest(titlesOf(file), name.join(' › '))
  })
}

test('every kind of fault is there once, and no other', () => {
  expect(REGISTRY.map(({ id }) => id)).toEqual(IDS)
})

test('each says in a sentence what holds, and why nobody tries it where nobody does', () => {
  for (const { id, holds, owner } of REGISTRY) {
    for (const text of [holds, ...('none' in owner ? [owner.none] : [])]) {
      expect([id, text]).toEqual([id, expect.stringMatching(/^[A-Z][^\n]{15,160}\.$/)])
    }
  }
})

test('each test that is named is in its file', () => {
  const named = REGISTRY.flatMap(({ owner }) => ('test' in owner ? [owner.test, ...owner.also] : []))
  expect(missing(named)).toEqual([])
})

test('each test that a run through PgBouncer leaves out is in its file, and it is said why', () => {
  const named = Object.keys(NOT_POOLED)
  expect(missing(named.filter((name) => name.includes(' › ')))).toEqual([])
  expect(named.filter((name) => !name.includes(' › ') && !existsSync(ROOT + name))).toEqual([])
  for (const why of Object.values(NOT_POOLED)) expect(why).toMatch(/^it[s ].{20,}/)
})

test('each promise of docs/guarantees.md names tests that are there', () => {
  const page = read('docs/guarantees.md')
  const promises = page.split(/^### /m).slice(1)
  expect(promises.length).toBeGreaterThan(20)
  const bare = promises.filter((promise) => heldBy(promise).length === 0)
  expect(bare.map((promise) => promise.split('\n')[0])).toEqual([])
  expect(missing(heldBy(page))).toEqual([])
  // Each invariant is part of a promise.
  const named = new Set([...page.matchAll(/\bI(\d+)\b/g)].map(([, n]) => Number(n)))
  const invariants = [...read('ARCHITECTURE.md').matchAll(/^\| I(\d+) \|/gm)].map(([, n]) => Number(n))
  expect(invariants.length).toBeGreaterThanOrEqual(20)
  expect(invariants.filter((n) => !named.has(n))).toEqual([])
})

/** The tests that a text lists, each in lines of its own. */
function heldBy(text: string): string[] {
  const items = text.matchAll(/^- `(test\/[^`]+)` › (.+(?:\n {2}\S.*)*)$/gm)
  return [...items].map(([, file, name]) => `${file} › ${name!.replaceAll(/\n +/g, ' ')}`)
}

test('names are read as vitest puts them together', () => {
  const titles = titlesIn(`
    describe.each([1])('a %s', () => {
      for (const n of [1]) test.runIf(true).each([1])(\`b \${n}\`, () => {})
      describe('c', () => { test('d', { timeout: 1 }, () => { other('e') }) })
    })
    it('f', () => {})
  `)
  expect(titles).toEqual(['a %s › b %s', 'a %s › c › d', 'f'])
  expect(
    ['a 1 › b 2', 'a %s › c › d', 'f', 'a › c › d', 'e', 'a 1 › c › de'].map((name) => hasTest(titles, name)),
  ).toEqual([true, true, true, false, false, false])
})
