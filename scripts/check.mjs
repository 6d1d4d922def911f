// Everything that must hold, one step after the other; a step that fails does not hide the next.
// Started by ./check, which has installed what npm has.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../', import.meta.url))
const HELP = `usage: ./check [--all] [--long] [--pg MAJOR] [--node MAJOR] [-- vitest arguments]

  --all          install the programs that npm does not have first (Debian, as root)
  --long         also what takes minutes, what goes through PgBouncer, and all on PostgreSQL 14 to 17 and
                 Node.js 22, 24 and 26
  --pg MAJOR     only the tests, on another PostgreSQL: 14, 15, 16, 17
  --node MAJOR   only the tests, on another Node.js: 22, 24, 26
`
/** What is not on npm, the program it brings, and what needs it. */
const PROGRAMS = [
  { debian: 'pgbouncer', program: 'pgbouncer', for: 'the tests through PgBouncer' },
  { debian: 'zsh', program: 'zsh', for: 'the completion of zsh' },
  { debian: 'fish', program: 'fish', for: 'the completion of fish' },
]
/** What the bench imports of its peers. They are no dependency: without them their own files are not type-checked. */
const PEERS = ['bullmq', 'graphile-worker', 'pg-boss', 'pg-copy-streams']
const NODES = { 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' }
const MAJORS = ['14', '15', '16', '17']

let passed = 0
let failed = 0
let skipped = 0

let options
try {
  options = parseArgs({
    options: {
      all: { type: 'boolean' },
      long: { type: 'boolean' },
      pg: { type: 'string' },
      node: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
    allowPositionals: true,
  })
} catch (error) {
  console.error(`${error.message}\n\n${HELP}`)
  process.exit(2)
}
const { values, positionals } = options
if (values.help) {
  console.log(HELP)
  process.exit(0)
}
if ((values.pg && !MAJORS.includes(values.pg)) || (values.node && !(values.node in NODES))) {
  console.error(`unknown version\n\n${HELP}`)
  process.exit(2)
}

if (values.all) installPrograms()
if (values.pg || values.node) {
  tests(
    `tests on ${[values.pg && `PostgreSQL ${values.pg}`, values.node && `Node.js ${values.node}`].filter(Boolean).join(', ')}`,
    values,
  )
} else {
  step(
    'generated files in step',
    () => node('scripts/embed-sql.mjs', '--check') && optional('scripts/generate-docs.mjs', '--check'),
  )
  step('types', () => bin('typescript/bin/tsc', '-p', 'tsconfig.json'))
  step('types of the bench', () =>
    bin('typescript/bin/tsc', '-p', `bench/tsconfig${peersAreHere() ? '' : '.bare'}.json`),
  )
  step('lint', () => bin('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.'))
  step('nothing unused', () => bin('knip/bin/knip.js'))
  step('build', () => build())
  step('package is sound (publint)', () => bin('publint/src/cli.js', '--strict'))
  tests('tests', {})
  if (values.long) {
    tests('tests that take minutes', { long: true, files: longer() })
    if (has('pgbouncer')) {
      const files = ['test/client', 'test/engine', 'test/worker']
      tests('tests through PgBouncer', { pooler: true, files })
    }
    for (const pg of MAJORS) tests(`tests on PostgreSQL ${pg}`, { pg })
    for (const major of Object.keys(NODES)) tests(`tests on Node.js ${major}`, { node: major })
  }
}
for (const { program, debian, for: what } of PROGRAMS) {
  if (!has(program)) console.log(`not run: ${what} (${program} is not installed; Debian has it as ${debian})`)
}
if (!peersAreHere()) {
  console.log('not type-checked: what the bench asks of its peers (installed by the first npm run bench)')
}
if (skipped > 0)
  console.log(`${skipped} tests were not run: what they need is missing here, as their output says`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)

function step(name, run) {
  const began = performance.now()
  console.log(`\n── ${name}`)
  const ok = run()
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok' : 'FAILED'}: ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`)
}

/** One run of the test suite; its tests are counted one by one. */
function tests(name, { pg, node: major, long, pooler, files = [] }) {
  console.log(`\n── ${name}`)
  const report = join(
    root,
    'artifacts',
    `tests${pg ? `-pg${pg}` : ''}${major ? `-node${major}` : ''}${long ? '-long' : ''}${pooler ? '-pooler' : ''}.json`,
  )
  mkdirSync(join(root, 'artifacts'), { recursive: true })
  rmSync(report, { force: true })
  const program = major ? nodeOf(major) : process.execPath
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = [
    vitest,
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile=${report}`,
    ...files,
    ...positionals,
  ]
  const { status } = spawnSync(program, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      ...(pg && { PG_MAJOR: pg }),
      ...(long && { ROWLOCK_LONG: '1' }),
      ...(pooler && { ROWLOCK_TEST_POOLER: '1' }),
      NO_COLOR: '1',
    },
  })
  const found = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined
  passed += found?.numPassedTests ?? 0
  failed += found?.numFailedTests ?? 0
  skipped += found?.numPendingTests ?? 0
  // A file that could not even be read, or an error outside any test, has no test to count.
  if (status !== 0 && !(found?.numFailedTests > 0)) failed++
}

/** The files of tests that do more when there is time. */
function longer() {
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
    .filter((path) => /\b(IS_LONG|ROWLOCK_LONG)\b/.test(readFileSync(join(root, path), 'utf8')))
}

function peersAreHere() {
  return PEERS.every((name) => existsSync(join(root, 'bench/node_modules', name)))
}

function build() {
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  return bin('typescript/bin/tsc', '-p', 'tsconfig.build.json')
}

function node(...args) {
  return (
    spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
  )
}

function optional(script, ...args) {
  return existsSync(join(root, script)) ? node(script, ...args) : true
}

function bin(path, ...args) {
  return node(join(root, 'node_modules', path), ...args)
}

/** Another Node.js, as npm has it: fetched when first asked for. */
function nodeOf(major) {
  const folder = join(root, 'artifacts/nodes')
  const program = join(folder, `node_modules/node${major}/bin/node`)
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true })
    const known = Object.entries(NODES).filter(
      ([each]) => each === major || existsSync(join(folder, `node_modules/node${each}/bin/node`)),
    )
    const platform = `${process.platform}-${process.arch}`
    const specs = known.map(([each, version]) => `node${each}@npm:node-${platform}@${version}`)
    const npm = [
      'install',
      '--no-save',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--prefix',
      folder,
      ...specs,
    ]
    spawnSync('npm', npm, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] })
  }
  return program
}

function has(program) {
  return (process.env.PATH ?? '')
    .split(':')
    .concat('/usr/sbin', '/usr/local/sbin')
    .some((folder) => existsSync(join(folder, program)))
}

function installPrograms() {
  const missing = PROGRAMS.filter(({ program }) => !has(program)).map(({ debian }) => debian)
  if (missing.length === 0) return
  if (process.getuid?.() !== 0 || !has('apt-get')) {
    console.log(`not installed: ${missing.join(', ')} (needs root and apt-get)`)
    return
  }
  const run = (...args) =>
    spawnSync('apt-get', args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
  run('update')
  run('install', '-y', '--no-install-recommends', ...missing)
}
