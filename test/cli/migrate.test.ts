// `rowlock migrate` as people run it: a process, its exit code, and what it says where.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RELEASE } from '../../src/engine/release.ts'
import { runTypeScript, startTypeScript } from '../support/script.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'
import { ROOT } from '../support/tree.ts'
import { until } from '../support/until.ts'

let db: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  db = await createDatabase('cli')
  pool = new pg.Pool({ connectionString: db.url, max: 2 })
  pool.on('error', () => {})
})
afterAll(async () => {
  await pool.end()
  await db.drop()
})

const run = (args: readonly string[], env: Record<string, string> = {}) =>
  runTypeScript('src/cli/main.ts', args, env)
const migrations = async (schema: string) =>
  (await pool.query(`select number from ${pg.escapeIdentifier(schema)}.migration`)).rows.length

describe('rowlock migrate', () => {
  test('installs, says what it did, and says that there is nothing to do the next time', async () => {
    const first = await run(['migrate', '--url', db.url])
    expect(first).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^applied 0001_tables\napplied 0002_/),
    })
    expect(first.stdout).toMatch(
      /^\d+ migrations? applied, \d+ functions replaced: the schema is up to date\n$/,
    )
    expect(await run(['migrate', '--url', db.url])).toEqual({
      code: 0,
      signal: null,
      stdout: 'nothing to do: the schema is up to date\n',
      stderr: '',
    })
    expect(await migrations('rowlock')).toBeGreaterThan(0)
  })

  test('takes the address from DATABASE_URL, any schema, and runs beside others of its kind', async () => {
    const ended = await Promise.all(
      [1, 2, 3].map(() => run(['migrate', '--schema', `it's "odd"`], { DATABASE_URL: db.url })),
    )
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(ended.filter(({ stdout }) => stdout.includes('applied'))).toHaveLength(1)
    expect(await migrations(`it's "odd"`)).toBe(await migrations('rowlock'))
  })

  test('prints the SQL instead, for psql, without a database', async () => {
    const { code, stdout, stderr } = await run(['migrate', '--sql', '--schema', 'by hand'])
    expect([code, stderr]).toEqual([0, ''])
    await pool.query(stdout)
    expect(await migrations('by hand')).toBe(await migrations('rowlock'))
    expect(await run(['migrate', '--schema', 'by hand', '--url', db.url])).toMatchObject({
      code: 0,
      stdout: 'nothing to do: the schema is up to date\n',
    })
  })

  test('does not mind a reader that goes away', async () => {
    const child = startTypeScript('src/cli/main.ts', ['migrate', '--sql'])
    child.process.stdout!.destroy()
    expect(await child.ended).toMatchObject({ code: 0, stderr: '' })
  })

  test('does not mind that nobody reads its progress, and still does its work', async () => {
    const child = startTypeScript('src/cli/main.ts', ['migrate', '--url', db.url, '--schema', 'unheard'])
    child.process.stderr!.destroy()
    expect(await child.ended).toMatchObject({ code: 0 })
    expect(await migrations('unheard')).toBe(await migrations('rowlock'))
  })

  test('that fails says why, and what to check when it could not connect, without a stack', async () => {
    await pool.query('create schema taken; create table taken.waiting ()')
    const cases: [string[], RegExp, number][] = [
      [['--schema', 'taken'], /already exists.*schema of its own.*\[MIGRATION_FAILED\]/s, 1],
      [['--url', 'postgres://127.0.0.1:1/x'], /No connection.*\n {2}Nothing listens there/s, 5],
      [['--url', `${db.url}_gone`], /does not exist.*\n {2}There is no such database/s, 5],
      [
        [
          '--url',
          db.url.replace('//', '//nobody:secret@').replace(/nobody:secret@[^@/]*@/, 'nobody:secret@'),
        ],
        /nobody/,
        5,
      ],
    ]
    const ended = await Promise.all(cases.map(([args]) => run(['migrate', '--url', db.url, ...args])))
    for (const [n, [, message, code]] of cases.entries()) {
      expect(ended[n]).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) })
      expect(ended[n]!.stderr).not.toMatch(/ {4}at |secret/)
      expect(ended[n]!.stderr).toMatch(/^rowlock: /)
    }
  })
})

test.each([
  ['no address', ['migrate'], /Give --url, or set DATABASE_URL/],
  ['another kind of address', ['migrate', '--url', 'mysql://x'], /must begin with postgres/],
  ['an empty schema', ['migrate', '--schema', '', '--sql'], /schema/],
  ['a long schema', ['migrate', '--schema', 'x'.repeat(64), '--sql'], /63 bytes/],
  ['a slip in the command', ['migrat'], /unknown command 'migrat'.*Did you mean migrate\?/s],
  ['a slip in an option', ['migrate', '--shema', 'x'], /unknown option '--shema'.*Did you mean --schema\?/s],
  ['an option without its value', ['migrate', '--url'], /argument missing/],
  ['a word too many', ['migrate', 'now'], /too many arguments/],
  ['nothing at all', [], /Usage: rowlock/],
])('%s is a mistake in the call: exit code 2, said on stderr', async (_, args, message) => {
  const ended = await run(args)
  expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  expect(ended.stderr).not.toMatch(/ {4}at /)
})

test.each([
  [['--help'], /Usage: rowlock .*Set up and run:\n.*migrate/s],
  [['help', 'migrate'], /Usage: rowlock migrate .*--sql.*Examples:.*--schema/s],
  [['migrate', '--help'], /No\s+superuser, no extension/],
  [['--version'], new RegExp(`^${RELEASE.replaceAll('.', '\\.')}\n$`)],
])('rowlock %j answers on stdout', async (args, message) => {
  expect(await run(args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(message) })
})

test('an end by a signal in the middle leaves the database as it was', async () => {
  const holder = await pool.connect()
  await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('rowlock migrate cut off', 0))`)
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', join(ROOT, 'src/cli/main.ts'), 'migrate', '--url', db.url, '--schema', 'cut off'],
    { stdio: 'ignore' },
  )
  await until('it waits for its turn', async () => {
    const { rows } = await pool.query(`select from pg_stat_activity
      where datname = current_database() and application_name = 'rowlock cli'`)
    return rows.length > 0
  })
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM'])
  await holder.query('commit')
  holder.release()
  const { rows } = await pool.query(`select from pg_namespace where nspname = 'cut off'`)
  expect(rows).toEqual([])
})
