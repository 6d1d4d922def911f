// Each guard of the list is where the mutant says, and the test that must miss it exists. ROWLOCK_LONG=1 takes them out
// one by one; `npm run mutants` does it without the rest.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MUTANTS } from '../../faults/mutants/list.ts'
import { catcher, withoutGuard } from '../../faults/mutants/mutant.ts'
import { ROOT, read } from '../support/tree.ts'

/** What vitest puts a value in. */
const PLACE = /%[a-z#]|\$[a-zA-Z.]+/g

test('every guard that a mutant takes out is there, once', () => {
  const wrong = MUTANTS.flatMap((mutant) => {
    try {
      return withoutGuard(read(mutant.file), mutant) === read(mutant.file)
        ? [`${mutant.name} changes nothing`]
        : []
    } catch (error) {
      return [(error as Error).message]
    }
  })
  expect(wrong).toEqual([])
})

test('no two mutants have one name', () => {
  const names = MUTANTS.map(({ file, name }) => `${file}: ${name}`)
  expect(names.filter((name, n) => names.indexOf(name) !== n)).toEqual([])
})

test('every test that catches a mutant exists', () => {
  const titles = new Map<string, RegExp[]>()
  const titlesOf = (file: string) => {
    const known =
      titles.get(file) ??
      [...read(file).matchAll(/(['`])((?:\\.|(?!\1)[^\\\n])+)\1/g)].flatMap(([, , title]) =>
        // Short strings are no titles.
        title!.replaceAll(PLACE, '').trim().length < 6 ? [] : [new RegExp(`${pattern(title!)}$`)],
      )
    titles.set(file, known)
    return known
  }
  const missing = MUTANTS.map(catcher).filter(
    ({ file, name }) => !titlesOf(file).some((title) => title.test(name)),
  )
  expect(missing).toEqual([])
})

/** What a title with placeholders may become. */
function pattern(title: string): string {
  const literal = title.replaceAll(/\\(.)/g, '$1').replaceAll(/[\\^.*+?()[\]{}|]/g, '\\$&')
  return literal.replaceAll(PLACE, '.*')
}

test.runIf(process.env.ROWLOCK_LONG === '1')(
  'no mutant survives',
  () => {
    const env = { ...process.env }
    for (const name of Object.keys(env))
      if (/^(VITEST|TEST$|NODE_ENV$|MODE$|DEV$|PROD$|SSR$)/.test(name)) delete env[name]
    const tsx = join(ROOT, 'node_modules/tsx/dist/cli.mjs')
    const { stdout, status } = spawnSync(process.execPath, [tsx, join(ROOT, 'faults/mutants/main.ts')], {
      cwd: ROOT,
      env,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    })
    expect(stdout.split('\n').filter((line) => line.startsWith('SURVIVED'))).toEqual([])
    expect(status).toBe(0)
  },
  7_200_000,
)
