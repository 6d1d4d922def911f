// The packed package in what people bundle, test and run with: each migrates, enqueues and works against a real
// database. ROWLOCK_LONG=1 (`./check --long`): it installs them all.

import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IS_LONG } from '../support/long.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'
import { until } from '../support/until.ts'
import { install, LIFE, pack } from './pack.ts'

const exec = promisify(execFile)
const TOOLS = [
  'esbuild@0.28',
  'webpack@5',
  'webpack-cli@7',
  'vite@8',
  'vitest@4',
  'jest@30',
  'next@16',
  'react@19',
  'react-dom@19',
  'typescript@5.9',
  '@types/node@20',
]
const ESM = `import { createRowlock, defineJob, handle } from 'rowlock'\n${LIFE}`
const CJS = `const { createRowlock, defineJob, handle } = require('rowlock')\n${LIFE}`

describe.runIf(IS_LONG)('a job is done', { timeout: 300_000 }, () => {
  let folder: string
  let project: string
  let database: TestDatabase

  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), text)
  }
  const environment = () => {
    const { NODE_OPTIONS: _, VITEST: __, NODE_ENV: ___, ...env } = process.env
    return { ...env, DATABASE_URL: database.url, NEXT_TELEMETRY_DISABLED: '1' }
  }
  /** Run a program of the project. Answers what it printed; on failure what it said is in the error. */
  const run = async (program: string, args: readonly string[], env: Record<string, string> = {}) => {
    const { stdout, stderr } = await exec(program, args, {
      cwd: project,
      env: { ...environment(), ...env },
    }).catch((error) => {
      throw new Error(`${error.message}\n${error.stdout}`)
    })
    return { stdout: stdout.trim(), stderr }
  }
  const tool = (name: string, ...args: string[]) => run(join(project, 'node_modules/.bin', name), args)
  const node = (...args: string[]) => run(process.execPath, args)

  beforeAll(async () => {
    database = await createDatabase('consumers')
    folder = mkdtempSync(join(tmpdir(), 'rowlock-consumers-'))
    const tarball = await pack(folder)
    project = join(folder, 'project')
    mkdirSync(project)
    write('package.json', '{ "name": "project", "private": true }')
    const bun = process.arch === 'x64' && process.platform === 'linux' ? ['@oven/bun-linux-x64'] : []
    await install(project, tarball, 'pg', ...TOOLS, ...bun)
    write('life.mjs', ESM)
  }, 600_000)
  afterAll(async () => {
    await database?.drop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  test.each(['cjs', 'esm'])('bundled by esbuild (%s)', async (format) => {
    const out = `esbuild/${format}.${format === 'esm' ? 'mjs' : 'cjs'}`
    const banner =
      format === 'esm'
        ? [
            `--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
          ]
        : []
    const flags = ['--bundle', '--platform=node', `--format=${format}`, '--external:pg-native', ...banner]
    const { stderr } = await tool('esbuild', 'life.mjs', ...flags, `--outfile=${out}`, '--log-level=warning')
    expect(stderr).toBe('')
    expect((await node(out)).stdout).toBe('done you')
  })

  test('bundled by webpack', async () => {
    write(
      'webpack.config.cjs',
      `module.exports = { mode: 'production', target: 'node', entry: './life.mjs',
         externals: { 'pg-native': 'commonjs pg-native' },
         output: { path: __dirname + '/webpack', filename: 'all.cjs' } }`,
    )
    const { stdout } = await tool('webpack', '--config', 'webpack.config.cjs')
    expect(stdout).not.toMatch(/WARNING|ERROR/)
    expect((await node('webpack/all.cjs')).stdout).toBe('done you')
  })

  test('built by Vite for a server, with the packages beside it', async () => {
    await tool('vite', 'build', '--ssr', 'life.mjs', '--outDir', 'vite', '--logLevel', 'warn')
    expect((await node('vite/life.js').catch(() => node('vite/life.mjs'))).stdout).toBe('done you')
  })

  test('in a route of Next, built and started', async () => {
    write(
      'app/route.js',
      `import { createRowlock, defineJob, handle } from 'rowlock'
       export const dynamic = 'force-dynamic'
       const hello = defineJob('hello')
       export async function GET() {
         const rowlock = createRowlock({ connectionString: process.env.DATABASE_URL })
         await rowlock.migrate()
         const { id } = await rowlock.enqueue(hello, { to: 'you' })
         const worker = rowlock.worker({ handlers: [handle(hello, ({ input }) => input.to)] })
         await worker.start()
         let job
         do job = await rowlock.job(id)
         while (job.state !== 'done')
         await worker.stop()
         await rowlock.close()
         return new Response(job.state + ' ' + job.result)
       }`,
    )
    write('next.config.mjs', 'export default { turbopack: { root: import.meta.dirname } }')
    await tool('next', 'build')
    const port = await freePort()
    const next = join(project, 'node_modules/next/dist/bin/next')
    const server = spawn(process.execPath, [next, 'start', '-p', String(port), '-H', '127.0.0.1'], {
      cwd: project,
      env: environment(),
      stdio: 'ignore',
    })
    try {
      const answer = await until(
        'the route answers',
        () => fetch(`http://127.0.0.1:${port}/`).catch(() => undefined),
        { withinMs: 60_000 },
      )
      expect(await answer.text()).toBe('done you')
    } finally {
      server.kill('SIGKILL')
    }
  })

  const TEST = (imports: string) => `${imports}
    import { createRowlock, defineJob, handle } from 'rowlock'
    import { drain } from 'rowlock/testing'
    test('a job', async () => {
      const rowlock = createRowlock({ connectionString: process.env.DATABASE_URL })
      await rowlock.migrate()
      const hello = defineJob('tested')
      const { id } = await rowlock.enqueue(hello, { to: 'you' })
      await drain(rowlock, { handlers: [handle(hello, ({ input }) => input.to)] })
      expect((await rowlock.job(id)).result).toBe('you')
      await rowlock.close()
    })`

  test('in a test of Jest', async () => {
    write('jest/life.test.mjs', TEST(''))
    write('jest/jest.config.mjs', `export default { testMatch: ['**/*.test.mjs'], transform: {} }`)
    const jest = join(project, 'node_modules/jest/bin/jest.js')
    const flags = ['--experimental-vm-modules', '--no-warnings', jest, '--rootDir', join(project, 'jest')]
    const { stderr } = await node(...flags, '--config', join(project, 'jest/jest.config.mjs'))
    expect(stderr).toMatch(/Tests: +1 passed, 1 total/)
    expect(stderr).not.toMatch(/did not exit|open handle/)
  })

  test('in a test of Vitest', async () => {
    write('vitest/life.test.mjs', TEST(`import { expect, test } from 'vitest'`))
    write('vitest/vitest.config.mjs', 'export default { root: import.meta.dirname }')
    const { stdout } = await tool('vitest', 'run', '--config', join(project, 'vitest/vitest.config.mjs'))
    expect(stdout).toMatch(/1 passed/)
  })

  test.runIf(process.arch === 'x64' && process.platform === 'linux')('in Bun', async () => {
    const { stdout } = await run(join(project, 'node_modules/@oven/bun-linux-x64/bin/bun'), ['life.mjs'])
    expect(stdout).toBe('done you')
  })

  const TYPED = `import { createRowlock, defineJob, handle } from 'rowlock'
${LIFE.replace("defineJob('hello')", "defineJob<{ to: string }, string>('hello')")
  .replace('process.env.DATABASE_URL', 'process.env.DATABASE_URL!')
  .replace('let worker\n', "let worker: import('rowlock').Worker\n")
  .replace('new Promise((resolve, reject)', 'new Promise<void>((resolve, reject)')
  .replace('await worker.stop()', 'await worker!.stop()')
  .replace('job.state, job.result', 'job!.state, job!.result')}`

  test.each([
    ['commonjs', 'node10', 'cts'],
    ['nodenext', 'nodenext', 'cts'],
    ['nodenext', 'nodenext', 'mts'],
    ['esnext', 'bundler', 'mts'],
  ])('compiled by TypeScript with module %s, resolution %s, as .%s', async (module, resolution, ending) => {
    const name = `typed-${module}-${resolution}`
    write(`${name}/life.${ending}`, TYPED)
    const options = {
      module,
      moduleResolution: resolution,
      target: 'es2022',
      strict: true,
      skipLibCheck: false,
      types: ['node'],
      outDir: 'out',
      rootDir: '.',
    }
    write(`${name}/tsconfig.json`, JSON.stringify({ compilerOptions: options, files: [`life.${ending}`] }))
    await tool('tsc', '-p', `${name}/tsconfig.json`)
    const { stdout } = await node('--no-warnings', `${name}/out/life.${ending.replace('ts', 'js')}`)
    expect(stdout).toBe('done you')
  })

  test('required by a CommonJS module, and with nothing of ours for development', async () => {
    write('life.cjs', CJS)
    expect((await node('--no-warnings', 'life.cjs')).stdout).toBe('done you')
  })
})

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
