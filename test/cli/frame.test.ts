// What every command has from the frame: words that are wrong, options before and after, help, colours, exit codes.

import { describe, expect, test } from 'vitest'
import { withoutPassword } from '../../src/cli/address.ts'
import { EXITS } from '../../src/cli/exit.ts'
import { call } from '../support/cli.ts'

const NOWHERE = 'postgres://ada:hunter22@127.0.0.1:1/shop'

describe('a wrong word is answered with the nearest right one, and exit code 2', () => {
  test.each([
    ['a command', ['cancle', '1'], /unknown command 'cancle'.*Did you mean cancel\?/s],
    ['a command of a command', ['bulk', 'resum', '3'], /did you mean 'resume'\?/],
    ['an option', ['jobs', '--sate', 'done'], /unknown option '--sate'.*Did you mean --state\?/s],
    ['an option for every command', ['queues', '--jsno'], /Did you mean --json\?/],
    ['a state', ['jobs', '--state', 'canceled'], /Did you mean 'cancelled'\?/],
    ['a state that is begun', ['jobs', '--state', 'dead'], /Did you mean 'dead_letter'\?/],
    ['a state among several', ['jobs', '--state', 'queued,runing'], /Did you mean 'running'\?/],
    [
      'a state that the verb does not take',
      ['redrive', '--state', 'failed'],
      /redrive does not apply.*dead_letter/,
    ],
    ['a retention class', ['queue', 'mail', '--retention-days', '8'], /one of 0, 1, 7, 30, 90 days/],
    ['a concurrency', ['queue', 'mail', '--concurrency', '0'], /from 1 to 1,000/],
    ['a length', ['queue', 'mail', '--target-wait', '5'], /such as '30s'/],
    ['an instant', ['jobs', '--enqueued-since', 'yesterday'], /2026-01-31T04:00Z.*2h/],
    ['metadata', ['jobs', '--metadata', '[1]'], /JSON object such as/],
    ['a priority', ['prioritize', '11', '1'], /from -10 to 10/],
    ['an id', ['why', '0'], /an id is a number above 0/i],
    ['an id that none can be', ['why', '9223372036854775808'], /An id is at most 9223372036854775807/],
    [
      'a part of options',
      ['jobs', '--since', '2h'],
      /one of --enqueued-since, --available-since, --ended-since/,
    ],
    ['a verb', ['changes', '--verb', 'cancle'], /Did you mean 'cancel'\?/],
    ['a command to help with', ['help', 'jobbs'], /has no command 'jobbs'; did you mean 'jobs'\?/],
    ['a command of a command to help with', ['help', 'bulk', 'resum'], /did you mean 'resume'\?/],
    ['a reason for nothing', ['queue', 'mail', '--reason', 'x'], /--reason goes with a change/],
    [
      'a concurrency behind a colon',
      ['work', 'x.js', '--queue', 'mail:x'],
      /last colon.*from 1 to 1,000: mail:5, or mail:x:5/,
    ],
    ['an id of many', ['cancel', '1', 'x'], /an id is a number above 0; got "x"/],
    ['a shell', ['completion', 'bahs'], /Did you mean 'bash'\?/],
    ['a limit', ['jobs', '--limit', '1e3'], /whole number from 1/],
  ])('%s', async (_, args, message) => {
    const ended = await call(args, { url: NOWHERE })
    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
    expect(ended.stderr).toMatch(/^rowlock: /)
    expect(ended.stderr).not.toMatch(/ {4}at |hunter22/)
  })

  test.each([
    ['no job', ['cancel'], /which jobs\? Give ids, or a filter/],
    ['ids and a filter', ['cancel', '1', '--queue', 'mail'], /not both/],
    ['no job to show', ['job'], /which job\?/],
    ['an id and a key', ['job', '1', '--dedupe-key', 'k'], /not both/],
    ['a queue alone', ['job', '--queue', 'mail'], /which job\?/],
    ['no address', ['queues'], /Give --url, or set DATABASE_URL/],
    ['another kind of address', ['queues', '--url', 'mysql://x'], /must begin with postgres/],
    ['a schema that cannot be', ['queues', '--schema', 'x'.repeat(64), '--url', NOWHERE], /63 bytes/],
  ])('%s', async (_, args, message) => {
    expect(await call(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  })
})

test('a lost database is answered with what to check and exit code 5, without the password', async () => {
  for (const args of [
    ['queues'],
    ['job', '1'],
    ['why', '1'],
    ['cancel', '1'],
    ['jobs', '--json'],
    ['bulk', 'resume', '1'],
  ]) {
    const ended = await call(args, { url: NOWHERE })
    expect(ended).toMatchObject({ code: 5, stdout: '' })
    expect(ended.stderr).toMatch(/Tried 127\.0\.0\.1:1, database "shop", user "ada"/)
    expect(ended.stderr).toMatch(/Nothing listens there.*--url, else DATABASE_URL/s)
    expect(ended.stderr).not.toContain('hunter22')
  }
})

test('a password is taken out of whatever is said, as it is written and as it is meant', () => {
  const url = 'postgres://ada:p%40ss%20word@db/shop'
  expect(withoutPassword(`no ${url}, nor p@ss word`, url)).toBe('no postgres://ada:***@db/shop, nor ***')
  const other = 'postgres://db/shop?user=ada&password=secret99'
  expect(withoutPassword(`no ${other}`, other)).not.toContain('secret99')
  expect(withoutPassword('as it was', undefined, 'postgres://db/shop')).toBe('as it was')
  expect(withoutPassword('no postgres://ada:x@db', 'postgres://ada:x@db')).toBe('no postgres://ada:***@db')
})

test('global options stand before or after the command', async () => {
  const said = await Promise.all([
    call(['--url', NOWHERE, '--schema', 'jobs', 'queues']),
    call(['queues', '--schema', 'jobs', '--url', NOWHERE]),
    call(['queues'], { env: { DATABASE_URL: NOWHERE, ROWLOCK_SCHEMA: 'jobs' } }),
  ])
  expect(said.map(({ code }) => code)).toEqual([5, 5, 5])
  expect(new Set(said.map(({ stderr }) => stderr)).size).toBe(1)
})

test('every command teaches by examples, and says all within 80 columns', async () => {
  const { stdout } = await call(['--help'])
  const commands = [...stdout.matchAll(/^ {2}([a-z][a-z-]*)(?: [<[].*?)? {2,}\S/gm)].map(([, name]) => name!)
  expect(commands.length).toBeGreaterThan(15)
  for (const name of commands.filter((each) => each !== 'help')) {
    const help = await call([name, '--help'])
    expect(help, name).toMatchObject({ code: 0, stderr: '' })
    const [, examples = ''] = /\nExamples?:\n((?: {2}.*\n)+)/.exec(help.stdout) ?? []
    expect(examples.match(/^ {2}\S.*rowlock|^ {2}rowlock/gm)?.length, name).toBeGreaterThanOrEqual(2)
    const wide = help.stdout.split('\n').filter((line) => line.length > 80)
    expect(wide, name).toEqual([])
  }
  for (const { code } of Object.values(EXITS)) expect(stdout).toMatch(new RegExp(`^  ${code} +\\S`, 'm'))
})

test('colours are for terminals, unless somebody says otherwise', async () => {
  const isColoured = async (options: Parameters<typeof call>[1], ...args: string[]) =>
    (await call(['queues', '--url', NOWHERE, ...args], options)).stderr.includes('\u001b[')
  expect(await isColoured({})).toBe(false)
  expect(await isColoured({ terminal: 80 })).toBe(true)
  expect(await isColoured({ terminal: 80 }, '--no-color')).toBe(false)
  expect(await isColoured({ terminal: 80, env: { NO_COLOR: '1' } })).toBe(false)
  expect(await isColoured({ terminal: 80, env: { NO_COLOR: '' } })).toBe(true)
  expect(await isColoured({ terminal: 80, env: { TERM: 'dumb' } })).toBe(false)
  expect(await isColoured({ env: { FORCE_COLOR: '1' } })).toBe(true)
  expect(await isColoured({ terminal: 80, env: { FORCE_COLOR: '0' } })).toBe(false)
})
