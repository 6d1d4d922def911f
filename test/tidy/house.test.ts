import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf, read } from '../support/tree.ts'

const SOURCES = filesOf('src', '.ts').filter((path) => !path.endsWith('.generated.ts'))
const FAULTS = filesOf('faults', '.ts')
const WALL = 400
const WIDEST = 120

/** From the ground up; what stands on a floor may use it and those below. Doors open onto everything. */
const FLOORS = ['ground', 'engine', 'worker']
const DOORS = ['cli', 'testing', 'rowlock.ts', 'index.ts']
/** Beside the house: knows only the ground. */
const ANNEXES = ['embedded']

const roomOf = (path: string): string => path.split('/')[1]!

function importsOf(path: string): string[] {
  return [...read(path).matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(([, target]) =>
    normalize(join(dirname(path), target!)),
  )
}

function mayUse(room: string, other: string): boolean {
  if (room === other || DOORS.includes(room))
    return !(room === 'rowlock.ts' && ['cli', 'testing', 'index.ts'].includes(other))
  if (ANNEXES.includes(room)) return other === 'ground'
  const floor = FLOORS.indexOf(room)
  return FLOORS.includes(other) && FLOORS.indexOf(other) < floor
}

test('every file of src stands in a known room', () => {
  const rooms = [...new Set(SOURCES.map(roomOf))]
  expect(rooms.filter((room) => ![...FLOORS, ...DOORS, ...ANNEXES].includes(room))).toEqual([])
})

test('imports go down, never up, never around', () => {
  const wrong = SOURCES.flatMap((path) =>
    importsOf(path)
      .filter((target) => !mayUse(roomOf(path), roomOf(target)))
      .map((target) => `${path} imports ${target}`),
  )
  expect(wrong).toEqual([])
})

test('no two files import each other', () => {
  const edges = new Map(SOURCES.map((path) => [path, importsOf(path)]))
  const state = new Map<string, 'open' | 'done'>()
  const cycles: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
      return
    }
    state.set(path, 'open')
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of SOURCES) visit(path, [])
  expect(cycles).toEqual([])
})

test('no file is higher than the wall, no line wider', () => {
  const files = [
    ...SOURCES,
    ...FAULTS,
    ...filesOf('test', '.ts'),
    ...filesOf('examples', '.ts'),
    ...filesOf('sql', '.sql'),
    ...filesOf('faults', '.sql'),
  ]
  const wrong = files.flatMap((path) => {
    const lines = read(path).split('\n')
    return [
      ...(lines.length > WALL ? [`${path} has ${lines.length} lines`] : []),
      ...lines.flatMap((line, n) =>
        line.length > WIDEST ? [`${path}:${n + 1} has ${line.length} characters`] : [],
      ),
    ]
  })
  expect(wrong).toEqual([])
})

test('no file is named for what it is not', () => {
  const vague = /(^|\/)(utils?|helpers?|common|lib|misc|shared)(\.|\/)/
  expect([...SOURCES, ...FAULTS, ...filesOf('test', '.ts')].filter((path) => vague.test(path))).toEqual([])
})

test('every file of src and faults begins by saying what it is for', () => {
  const starts = /^(#!.*\n)?(\/\/ |\/\*\* )/
  expect([...SOURCES, ...FAULTS].filter((path) => !starts.test(read(path)))).toEqual([])
})

test('every exported function and class says what it does', () => {
  const told = [...SOURCES.filter((path) => !path.startsWith('src/cli/')), ...FAULTS]
  const wrong = told.flatMap((path) => {
    const text = read(path)
    const names = [...text.matchAll(/^export (?:async )?(?:function|class) (\w+)/gm)].map(([, name]) => name!)
    // One comment stands for all overloads of a function; a class may be what its file is about.
    return [...new Set(names)]
      .filter((name) => {
        const documented = new RegExp(
          `\\*/\\n(?:// biome-ignore.*\\n)?export (?:async )?(?:function|class) ${name}\\b`,
        )
        return !documented.test(text)
      })
      .map((name) => `${path}: ${name}`)
  })
  expect(wrong).toEqual([])
})

test('the release is that of the package', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  expect(read('src/engine/release.ts')).toContain(`'${version}'`)
})

test('no path is read out of a file URL as text: blanks and other signs would be escaped in it', () => {
  const all = ['src', 'test', 'faults', 'examples', 'scripts'].flatMap((folder) => [
    ...filesOf(folder, '.ts'),
    ...filesOf(folder, '.mjs'),
  ])
  const wrong = /import\.meta\.url\)\.pathname/
  expect([...all, 'vitest.config.ts'].filter((path) => wrong.test(read(path)))).toEqual([])
})
