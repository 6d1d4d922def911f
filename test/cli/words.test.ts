// The command line speaks the words of the API, and loads no more than a call needs.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { FIELDS } from '../../src/cli/job-fields.ts'
import { inOrder, KEYS } from '../../src/cli/key-order.ts'
import { FILTER_NAMES } from '../../src/ground/filter.ts'
import { BULK_VERBS } from '../../src/ground/states.ts'
import { WORKER_OPTIONS } from '../../src/worker/options.ts'
import { deadProgram } from '../docs/commands.ts'
import { ROOT } from '../support/tree.ts'

const program = deadProgram()
const flag = (name: string) =>
  `--${name.replaceAll('_', '-').replaceAll(/[A-Z]/g, (l) => `-${l.toLowerCase()}`)}`
const flagsOf = (name: string): string[] =>
  program.commands
    .find((command: Command) => command.name() === name)!
    .options.map(({ long }) => long!.replace(/^--no-/, '--'))

test('a field of a job has the flag of its name', () => {
  const fields = FIELDS.filter((name) => name !== 'input').map(flag)
  expect(flagsOf('enqueue')).toEqual(expect.arrayContaining(fields))
  const own = ['--file', '--format', '--delimiter', '--key']
  expect(flagsOf('enqueue').filter((each) => !fields.includes(each) && !own.includes(each))).toEqual([])
})

test('a condition of a filter has the flag of its name, wherever jobs are looked for or changed', () => {
  const verbs = BULK_VERBS.map((verb) => verb.replace('_', '-'))
  for (const name of verbs)
    expect(flagsOf(name), name).toEqual(expect.arrayContaining(FILTER_NAMES.map(flag)))
  const looks = FILTER_NAMES.filter((key) => key !== 'all').map(flag)
  expect(flagsOf('jobs')).toEqual(expect.arrayContaining(looks))
})

test('settings of a queue, and conditions on changes, have the flags of their names', () => {
  expect(flagsOf('queue')).toEqual(
    expect.arrayContaining(['retentionDays', 'targetWait', 'concurrency'].map(flag)),
  )
  const conditions = ['jobId', 'queue', 'verb', 'actor', 'since', 'until', 'limit', 'before']
  expect(flagsOf('changes')).toEqual(conditions.map(flag).map((each) => expect.stringMatching(each)))
  const options = flagsOf('work').filter((each) => WORKER_OPTIONS.map(flag).includes(each))
  expect(options).toEqual(expect.arrayContaining(['--name', '--lease', '--grace', '--poll', '--listen']))
})

test('--json prints the keys of a row in the order of the API', () => {
  const files = { JobRow: 'find-job', ChangeRow: 'changes', BulkRow: 'bulk' } as const
  for (const [name, file] of Object.entries(files)) {
    const source = readFileSync(join(ROOT, `src/engine/${file}.ts`), 'utf8')
    const [, body] = new RegExp(`export interface ${name} {\\n(.*?)\\n}`, 's').exec(source)!
    const keys = [...body!.matchAll(/^ {2}readonly (\w+)/gm)].map(([, key]) => key)
    expect(KEYS[name as keyof typeof KEYS], name).toEqual(keys)
  }
  expect(Object.keys(inOrder({ queue: 'q', more: 1, id: '1' }, 'JobRow'))).toEqual(['id', 'queue', 'more'])
})

/** What a module needs before it runs: its imports but for types, and theirs. */
function needs(path: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  if (!existsSync(path)) return seen
  const source = readFileSync(path, 'utf8')
  for (const [, target] of source.matchAll(/^(?:import|export)(?! type)[^;'"]*?from '([^']+)'/gm)) {
    needs(target!.startsWith('.') ? join(dirname(path), target!) : join(ROOT, target!), seen)
  }
  return seen
}

test('help and completion load no database client, no CSV, no embedded server and no SQL', () => {
  const from = (entry: string) => [...needs(join(ROOT, entry))].map((path) => relative(ROOT, path))
  const loaded = from('src/cli/main.ts')
  const heavy = /(^|\/)(pg|csv-parse.*)$|^src\/embedded|sql\.generated|^src\/rowlock\.ts|^src\/index\.ts/
  expect(loaded).toContain('src/cli/completion.ts')
  expect(loaded.filter((path) => heavy.test(path))).toEqual([])
  expect(loaded.length).toBeLessThan(100)
  // What the walk would find if they were.
  expect(from('src/cli/enqueue-file.ts').filter((path) => heavy.test(path)).length).toBeGreaterThan(3)
})
