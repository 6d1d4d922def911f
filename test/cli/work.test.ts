// `rowlock work` as a process: modules of every kind, what is wrong with them, signals, exit codes. The modules take
// `rowlock` from a second copy of the package, as those of a project may.

import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Child, startTypeScript } from '../support/script.ts'
import { createDatabase } from '../support/server.ts'
import { ROOT } from '../support/tree.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let folder: string
const children: Child[] = []
beforeAll(async () => {
  db = await rowlockDatabase('cli work')
  folder = mkdtempSync(join(tmpdir(), 'rowlock work '))
  const copy = join(folder, 'node_modules/rowlock')
  mkdirSync(copy, { recursive: true })
  cpSync(join(ROOT, 'src'), join(copy, 'src'), { recursive: true })
  writeFileSync(
    join(copy, 'package.json'),
    '{ "name": "rowlock", "type": "module", "exports": { ".": "./src/index.ts" } }',
  )
  for (const name of ['pg', '@standard-schema', 'tsx'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  write('package.json', '{ "type": "module" }')
})
afterEach(async () => {
  for (const child of children.splice(0)) child.process.kill('SIGKILL')
  await db.sql('delete from rowlock.waiting; delete from rowlock.running; delete from rowlock.worker')
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await db.drop()
})

const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  const child = startTypeScript(
    'src/cli/main.ts',
    ['work', ...args],
    { DATABASE_URL: db.url, ...env },
    { cwd: folder },
  )
  children.push(child)
  return child
}
const run = (...args: Parameters<typeof start>) => start(...args).ended
const enqueue = async (kind: string, input: unknown, options = {}) =>
  String(
    await db.value('select id from rowlock.enqueue($1, $2::jsonb, $3::jsonb)', [
      kind,
      JSON.stringify(input),
      JSON.stringify(options),
    ]),
  )
const becomes = (id: string, state: string) =>
  until(`job ${id} is ${state}`, async () => {
    const [job] = await db.sql('select state, result, cause from rowlock.job where id = $1', [id])
    return job?.state === state && job
  })

const HANDLERS = `
import { cancel, defineJob, handle, permanent, snooze } from 'rowlock'
const greet = defineJob('greet')
const odd = defineJob('odd', { queue: 'odd' })
export const handlers = [
  handle(greet, async ({ input, log, signal }) => {
    log.info({ to: input.to }, 'hello')
    if (input.wait) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return { to: input.to }
  }),
  handle(odd, async ({ input }) => {
    if (input === 'cancel') return cancel('as it was asked')
    if (input === 'permanent') throw permanent(new Error('never'))
    throw new TypeError('it is broken')
  }),
]
// A pool, a server, a timer of theirs: no reason to go on.
setInterval(() => {}, 1_000)
`

describe('rowlock work', () => {
  test('runs what the module exports until SIGTERM, drains, and tells figures', async () => {
    write('handlers.mjs', HANDLERS)
    const child = start(['handlers.mjs', '--name', 'w1', '--concurrency', '3', '--lease', '10s'])
    await becomes(await enqueue('greet', { to: 'ada' }), 'done')
    await becomes(await enqueue('odd', 'cancel', { queue: 'odd' }), 'cancelled')
    expect(await becomes(await enqueue('odd', 'permanent', { queue: 'odd' }), 'failed')).toMatchObject({})
    await becomes(await enqueue('odd', 'throw', { queue: 'odd', max_attempts: 1 }), 'dead_letter')
    const [worker] = await db
      .sql('select name, identity from rowlock.worker')
      .catch(() => db.sql('select * from rowlock.worker'))
    expect(JSON.stringify(worker)).toContain('w1')
    child.process.kill('SIGTERM')
    const { code, signal, stdout, stderr } = await child.ended
    expect({ code, signal, stdout }).toEqual({ code: 0, signal: null, stdout: '' })
    expect(stderr).toMatch(/info {2}working .*kinds=\["greet","odd"\] queues=\["default","odd"\]/)
    expect(stderr).toMatch(/info {2}hello .*to=ada/)
    expect(stderr).toMatch(
      /warn {2}the handler failed .*\nTypeError: it is broken\n {4}at .*handlers\.mjs:14/,
    )
    expect(stderr).toMatch(/SIGTERM: draining.*stopped after .*: 2 done, 2 failed attempts/s)
    expect(await db.sql('select from rowlock.worker')).toEqual([])
  })

  test('aborts what runs at the second signal', async () => {
    write('handlers.mjs', HANDLERS)
    const child = start(['handlers.mjs', '--grace', '1h'])
    const id = await enqueue('greet', { to: 'ada', wait: true })
    await becomes(id, 'running')
    await until('it has started', () => child.said.stderr.includes('hello'))
    child.process.kill('SIGINT')
    await until('it drains', () => child.said.stderr.includes('SIGINT: draining'))
    child.process.kill('SIGINT')
    expect(await child.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/aborting what runs/) })
    expect((await db.sql('select state from rowlock.job where id = $1', [id]))[0].state).toMatch(
      /queued|done/,
    )
  })

  test('logs NDJSON on stdout with --json', async () => {
    write('handlers.mjs', HANDLERS)
    const child = start(['handlers.mjs', '--json', '--no-listen', '--poll', '100ms'])
    await becomes(await enqueue('greet', { to: 'ada' }), 'done')
    child.process.kill('SIGINT')
    const { code, stdout, stderr } = await child.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = linesOf(stdout)
    expect(lines[0]).toMatchObject({ level: 'info', message: 'working', kinds: ['greet', 'odd'] })
    expect(lines.find(({ message }) => message === 'hello')).toMatchObject({
      to: 'ada',
      kind: 'greet',
      attempt: 1,
    })
    expect(lines.at(-1)).toMatchObject({ done: 1, failed: 0 })
  })

  const LIST = `[handle(defineJob('greet'), async ({ input }) => input.to)]`
  test.each([
    ['a list as its default, in TypeScript', 'list.ts', `export default ${LIST} satisfies unknown[]`],
    [
      'options as its default',
      'options.mjs',
      `export default { handlers: ${LIST}, queues: { default: {} } }`,
    ],
    [
      'a function',
      'function.mjs',
      `export default async () => ({ handlers: ${LIST}, concurrency: undefined })`,
    ],
    [
      'queues beside the handlers',
      'queues.mjs',
      `export const handlers = ${LIST}, queues = { default: {} }, x = 1`,
    ],
    ['CommonJS', 'common.cjs', `module.exports = { handlers: ${LIST} }`],
    ['a package', 'node_modules/their-jobs/index.js', `exports.handlers = ${LIST}`],
  ])('takes %s', async (_, name, text) => {
    const isCommon = name.endsWith('.cjs') || name.includes('their-jobs')
    const names = isCommon
      ? `const { defineJob, handle } = require('rowlock')`
      : `import { defineJob, handle } from 'rowlock'`
    if (name.includes('their-jobs')) mkdirSync(join(folder, 'node_modules/their-jobs'), { recursive: true })
    write(name, `${names}\n${text}\n`)
    const child = start([name.includes('their-jobs') ? 'their-jobs' : name])
    const id = await enqueue('greet', { to: 'ada' })
    await Promise.race([
      becomes(id, 'done'),
      child.ended.then(({ stderr }) => Promise.reject(new Error(`it ended: ${stderr}`))),
    ])
    child.process.kill('SIGTERM')
    expect(await child.ended).toMatchObject({ code: 0 })
  })

  test('serves the queues that the line names, with their concurrency', async () => {
    write('handlers.mjs', HANDLERS)
    const child = start(['handlers.mjs', '--queue', 'a:7', '--queue', 'b:c:2', '--queue', 'od'])
    const queues = await until('it is known', async () => {
      const [row] = await db.sql('select to_jsonb(w) as worker from rowlock.worker w')
      return row && JSON.stringify(row.worker)
    })
    expect(queues).toMatch(/"a": ?\{[^}]*"concurrency": ?7/)
    expect(queues).toMatch(/"b:c": ?\{[^}]*"concurrency": ?2/)
    // What it said and what it wrote come by two ways.
    child.process.kill('SIGTERM')
    const { stderr } = await child.ended
    expect(stderr).toContain('no handler and no queues of the module have the queue od; did you mean odd?')
    expect(stderr).toContain('have the queue a\n')
  })

  test('has queues share slots, by the weights or the precedence of the line', async () => {
    write('handlers.mjs', HANDLERS)
    start(['handlers.mjs', '--slots', '7', '--weight', 'odd:3', '--lease', '1h'])
    start(['handlers.mjs', '--slots', '8', '--precedence', 'odd', '--precedence', 'default', '--lease', '1h'])
    const slots = await until('both are known', async () => {
      const rows = await db.sql('select slots from rowlock.workers() order by slots')
      return rows.length === 2 && rows.map((row) => row.slots)
    })
    expect(slots).toEqual([7, 8])
  })

  test('migrates first where it is told to', async () => {
    const empty = await createDatabase('cli work empty')
    write('handlers.mjs', HANDLERS)
    const without = await run(['handlers.mjs'], { DATABASE_URL: empty.url })
    expect(without).toMatchObject({ code: 1, stderr: expect.stringMatching(/rowlock migrate/) })
    const child = start(['handlers.mjs', '--migrate'], { DATABASE_URL: empty.url })
    await until('it works', () => child.said.stderr.includes('working'))
    child.process.kill('SIGTERM')
    expect(await child.ended).toMatchObject({ code: 0 })
    await empty.drop()
  })
})

test.each([
  ['no such file', 'nowhere', '', /there is no file nowhere, and no package of that name/],
  ['a name without its ending', './handlers', '', /did you mean \.\/handlers\.mjs\?/],
  ['a folder', '.', '', /is a folder/],
  ['nothing', 'nothing.mjs', ' ', /exports no handlers \(it exports nothing\).*export const handlers = /s],
  ['another name', 'other.mjs', 'export const Handlers = []', /is Handlers meant\?/],
  ['a number as its default', 'five.mjs', 'export default 5', /its default is 5: neither a list of handlers/],
  ['no list', 'none.mjs', 'export const handlers = []', /at least one handle/],
  [
    'what handle did not make',
    'raw.mjs',
    'export const handlers = [{ kind: 1 }]',
    /handlers\[0\] was not made by handle/,
  ],
  [
    'a slip in the options',
    'slip.mjs',
    'export default { handlers: [], quues: {} }',
    /no option quues; did you mean 'queues'/,
  ],
  [
    'a throw',
    'throws.mjs',
    'function configure() { throw new Error("no config") }\nconfigure()',
    /no config\n {4}at configure .*throws\.mjs:1/,
  ],
  [
    'a default that throws',
    'late.mjs',
    'export default () => { throw new Error("not now") }',
    /default function .* failed:\nError: not now/,
  ],
  ['a package that is missing', 'missing.mjs', `import 'not-installed'`, /not-installed/],
  ['no JavaScript', 'syntax.mjs', 'export const = 1', /SyntaxError/],
])(
  'a module with %s is a mistake in the call: exit code 2, and the reason',
  async (_, name, text, message) => {
    write('handlers.mjs', HANDLERS)
    if (text !== '') write(name, text)
    const ended = await run([name])
    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
    expect(ended.stderr).not.toMatch(/src\/cli\/(work|load-module|program)/)
  },
)

test('wrong options and a database that does not let it in are told apart by the exit code', async () => {
  write('handlers.mjs', HANDLERS)
  const url = new URL(db.url)
  url.password = 'wrong'
  const ended = await Promise.all([
    run(['handlers.mjs', '--queue', 'a:0']),
    run(['handlers.mjs', '--weight', 'odd']),
    run(['handlers.mjs', '--slots', '5', '--weight', 'od:3']),
    run(['handlers.mjs', '--weight', 'odd:3']),
    run(['handlers.mjs', '--slots', '5', '--precedence', 'odd']),
    run(['handlers.mjs', '--lease', '1']),
    run(['handlers.mjs', '--lease', '1ms']),
    run(['handlers.mjs'], { DATABASE_URL: '' }),
    run(['handlers.mjs', '--url', `${db.url}_gone`]),
    run(['handlers.mjs', '--schema', 'elsewhere']),
  ])
  expect(ended.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2, 2, 2, 2, 5, 1])
  for (const { stderr } of ended) expect(stderr).not.toMatch(/ {4}at /)
  expect(ended[2]!.stderr).toMatch(/does not serve the queue od; did you mean 'odd'/)
})

test('an error that nobody caught is told with their stack, and ends the process with 1', async () => {
  write(
    'boom.mjs',
    `import { defineJob, handle } from 'rowlock'
export const handlers = [handle(defineJob('boom'), () => new Promise(() => setTimeout(explode, 1)))]
function explode() { throw new Error('far from any handler') }`,
  )
  const child = start(['boom.mjs'])
  await enqueue('boom', null)
  const { code, stderr } = await child.ended
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /nobody caught this error.*\nError: far from any handler\n {4}at .*explode.*boom\.mjs:3/s,
  )
})
