// What only a process of its own can show: closed pipes, signals, exit codes, and completion in real shells.

import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
import { call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { startTypeScript } from '../support/script.ts'
import { ROOT } from '../support/tree.ts'
import { until } from '../support/until.ts'

const job = defineJob<number>('k', { queue: 'mail' })
/** Three steps. */
const JOBS = 1_500
let db: TestRowlock
let rowlock: Rowlock
/** Before the end of the second step. */
let gate: Gate
beforeAll(async () => {
  db = await rowlockDatabase('cli process')
  rowlock = createRowlock({ connectionString: db.url })
  await rowlock.enqueueMany(Array.from({ length: JOBS }, (_, n) => job.with(n)))
  gate = await makeGate(db, 'bulk', 'changed')
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const start = (...args: string[]) => startTypeScript('src/cli/main.ts', args, { DATABASE_URL: db.url })
const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')

test('a reader that goes away ends a list quietly, with 0', async () => {
  const child = start('jobs', '--all-pages', '--json')
  child.process.stdout!.once('data', () => child.process.stdout!.destroy())
  expect(await child.ended).toMatchObject({ code: 0, stderr: '' })
})

test('Ctrl-C in the middle of a change by filter: its step is finished, how to go on is said, and 130', async () => {
  const before = await waiting()
  await gate.close(500)
  const child = start('prioritize', '5', '--queue', 'mail', '--yes', '--json')
  // The first step has committed, the second is under way.
  await gate.untilReached()
  child.process.kill('SIGINT')
  await until('it has heard', () => child.said.stderr.includes('the running step is being finished'))
  await gate.open()
  const { code, stdout, stderr } = await child.ended
  expect(code).toBe(130)
  const [, n] = /To go on: rowlock bulk resume (\d+)/.exec(stderr)!
  const changed = await db.value<number>('select count(*)::integer from rowlock.waiting where priority = 5')
  expect(changed).toBe(1_000)
  expect(linesOf(stdout)).toHaveLength(changed)
  const rest = await start('bulk', 'resume', n!, '--json').ended
  expect([rest.code, linesOf(rest.stdout).length]).toEqual([0, before - changed])
})

test('nobody reads stdout any more: a change that was begun goes on to its end', async () => {
  const child = start('prioritize', '6', '--queue', 'mail', '--yes', '--json')
  child.process.stdout!.once('data', () => child.process.stdout!.destroy())
  expect(await child.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/1,500 changed/) })
  expect(await db.value('select count(*)::integer from rowlock.waiting where priority = 6')).toBe(JOBS)
})

test('killed in the middle, it goes on where its last step ended', async () => {
  await gate.close(500)
  const child = start('prioritize', '7', '--queue', 'mail', '--yes', '--json')
  await gate.untilReached()
  child.process.kill('SIGKILL')
  expect(await child.ended).toMatchObject({ code: null, signal: 'SIGKILL' })
  await gate.open()
  await until('its session is gone', async () => {
    const sessions = `
      select from pg_stat_activity where application_name = 'rowlock cli' and datname = current_database()`
    return (await db.sql(sessions)).length === 0
  })
  const [open] = linesOf((await call(['bulk', '--json'], { url: db.url })).stdout)
  expect(open).toMatchObject({ verb: 'prioritize', outcome: null, args: { priority: 7 } })
  expect(await call(['bulk', 'resume', open.id], { url: db.url })).toMatchObject({ code: 0 })
  expect(await db.value('select count(*)::integer from rowlock.waiting where priority = 7')).toBe(JOBS)
})

test('with no terminal nothing is asked, and what asks is refused', async () => {
  expect(await start('purge', '1', '2').ended).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /no terminal to ask on; nothing was changed\. To do it: rowlock purge 1 2 --yes\n$/,
    ),
  })
})

const SHELLS = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] } as const
/**
 * A shell waits for the names of queues no longer than a moment, so that on a busy machine they are left out. Here the
 * moment is a long one.
 */
const PATIENT = `data:text/javascript,${encodeURIComponent(
  'const wait = setTimeout; globalThis.setTimeout = (body, ms, ...args) => wait(body, ms * 40, ...args)',
).replaceAll("'", '%27')}`
const has = (shell: string) => spawnSync(shell, ['--version']).status === 0

describe('completion', { timeout: 300_000 }, () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rowlock completion '))
    const program = join(folder, 'rowlock')
    const words = [
      process.execPath,
      '--import',
      PATIENT,
      '--import',
      join(ROOT, 'node_modules/tsx/dist/loader.mjs'),
      join(ROOT, 'src/cli/main.ts'),
    ]
    writeFileSync(program, `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(' ')} "$@"\n`)
    chmodSync(program, 0o755)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const run = (shell: keyof typeof SHELLS, program: string) =>
    execFileSync(shell, [...SHELLS[shell], '-c', program], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}`, DATABASE_URL: db.url, HOME: folder },
    })
  const CASES: readonly [typed: string, offers: readonly string[], not: readonly string[]][] = [
    ['rowlock ca', ['cancel'], ['jobs']],
    ['rowlock jobs --sta', ['--state'], ['--queue']],
    ['rowlock jobs --state dea', ['dead_letter'], ['done']],
    ['rowlock --schema jobs bulk res', ['resume'], ['stop']],
    ['rowlock queue mail --retention-days ', ['7', '30'], ['mail']],
    ['rowlock pause ma', ['mail'], ['--queue']],
    ['rowlock completion ', ['bash', 'zsh', 'fish'], ['jobs']],
  ]

  /** Every case in one shell, between marks. */
  const check = (shell: keyof typeof SHELLS, before: string, offer: (typed: string) => string) => {
    const program = [before, ...CASES.map(([typed]) => `echo '== ${typed}'\n${offer(typed)}`)].join('\n')
    const told = run(shell, program).split(/^== /m)
    for (const [typed, offers, not] of CASES) {
      const [, ...lines] = told.find((each) => each.startsWith(`${typed}\n`))!.split('\n')
      const found = lines.map((line) => line.split('\t')[0]!)
      expect(found, typed).toEqual(expect.arrayContaining([...offers]))
      for (const word of not) expect(found, typed).not.toContain(word)
    }
  }
  const quoted = (typed: string) => typed.split(' ').map((word) => `'${word}'`)

  test.skipIf(!has('bash'))('works in bash', () => {
    check('bash', 'eval "$(rowlock completion bash)"', (typed) => {
      const words = quoted(typed)
      return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}
        _rowlock; printf '%s\\n' "\${COMPREPLY[@]}"`
    })
  })

  test.skipIf(!has('zsh'))('works in zsh', () => {
    // What the shell would offer is what is handed to these.
    const catching = `compdef() { }
      compadd() { [[ $1 == -- ]] && shift; print -l -- "\${(@M)@:#$cur*}" }
      _describe() { print -l -- \${(M)\${found%%:*}:#$cur*} }
      _files() { }
      eval "$(rowlock completion zsh)"`
    check('zsh', catching, (typed) => `words=(${quoted(typed).join(' ')}); CURRENT=$#words; _rowlock`)
  })

  test.skipIf(!has('fish'))('works in fish', () => {
    check('fish', 'rowlock completion fish | source', (typed) => `complete -C '${typed}'`)
  })

  test('of queues says nothing when there is no database', async () => {
    const url = 'postgres://127.0.0.1:1/x'
    expect(await call(['completion', 'queues'], { url })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
      exits: [],
    })
    expect(await call(['completion', 'queues'])).toEqual({ code: 0, stdout: '', stderr: '', exits: [] })
    const told = await until('it is asked in time', async () => {
      return (await call(['completion', 'queues'], { url: db.url })).stdout
    })
    expect(told).toBe('mail\n')
  })
})
