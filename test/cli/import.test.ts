// `rowlock enqueue --file`: what is wrong is said with its line, nothing is half done without a word, and whatever
// kills an import with a key, its next run does the rest.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { diceOf } from '../../faults/random.ts'
import { seedOf, untilBlocked } from '../engine/by-hand.ts'
import { call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { startTypeScript } from '../support/script.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let folder: string
beforeAll(async () => {
  db = await rowlockDatabase('cli import')
  folder = mkdtempSync(join(tmpdir(), 'rowlock import '))
})
afterEach(() =>
  db.sql(
    'delete from rowlock.waiting; delete from rowlock.payload; delete from rowlock.dedupe; delete from rowlock.import',
  ),
)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await db.drop()
})

const file = (name: string, content: string | Uint8Array) => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
const run = (args: readonly string[], input?: string) =>
  call(['enqueue', ...args], { url: db.url, ...(input !== undefined && { input }) })
const inputs = async () =>
  (
    await db.sql(
      `select coalesce(w.input, p.body) as input
         from rowlock.waiting w left join rowlock.payload p on p.job_id = w.id order by w.id`,
    )
  ).map(({ input }) => input)
const numbered = (n: number) =>
  Array.from({ length: n }, (_, i) => `{"kind": "n", "input": ${i + 1}}\n`).join('')
/** Each of 1 to n is a job, once. */
async function expectEach(n: number): Promise<void> {
  const [found] = await db.sql(
    `select count(*)::integer as jobs, count(distinct input::text)::integer as inputs, max((input)::integer) as most
       from rowlock.waiting`,
  )
  expect(found).toEqual({ jobs: n, inputs: n, most: n })
}

describe('NDJSON', () => {
  test('is enqueued line by line, in its order, with names as in SQL or as in TypeScript', async () => {
    const path = file(
      'jobs.ndjson',
      '\uFEFF{"kind": "a", "input": {"ü": "漢字"}, "dedupe_key": "k", "delay": "10 minutes"}\r\n' +
        '\r\n' +
        '{"kind": "b", "input": null, "dedupeKey": "k", "maxAttempts": 3, "tenant_id": null}\n' +
        `{"kind": "c", "input": ${JSON.stringify('x'.repeat(9_000))}, "available_at": "2030-01-01T00:00:00Z"}`,
    )
    expect(await run(['--file', path, '--queue', 'q', '--delay', '1h'])).toMatchObject({
      code: 0,
      stdout: `2 jobs enqueued from ${path}; 1 were there already, by their dedupe key\n`,
    })
    expect(await inputs()).toEqual([{ ü: '漢字' }, 'x'.repeat(9_000)])
    const [first] = await db.sql(
      `select queue, available_at - enqueued_at = '10 min' as own from rowlock.waiting`,
    )
    expect(first).toEqual({ queue: 'q', own: true })
  })

  test.each([
    ['no object', '[1]', /is an array: give one object a line|a job must be an object/],
    ['an array of jobs', '[{"kind": "n",', /begins an array.*jq -c/],
    ['no JSON', '{"kind": n}', /is no JSON/],
    [
      'an unknown field',
      '{"kind": "n", "input": 1, "prioritty": 1}',
      /no field "prioritty"; did you mean 'priority'/,
    ],
    [
      'a field twice',
      '{"kind": "n", "input": 1, "dedupe_key": "a", "dedupeKey": "b"}',
      /dedupe_key is given twice/,
    ],
    ['no kind', '{"input": 1}', /kind is missing/],
    ['no input', '{"kind": "n"}', /input is missing/],
    ['a wrong field', '{"kind": "n", "input": 1, "dedupeKey": 7}', /dedupe_key must be a string/],
    ['a length as a number', '{"kind": "n", "input": 1, "delay": 5}', /delay must be text with its unit/],
    ['NUL in a value', '{"kind": "n", "input": "\\u0000"}', /NUL/],
    ['NUL', '{"kind": "n", "input": "\0"}', /holds a NUL/],
    ['half a character', '{"kind": "n", "input": "\\ud800"}', /surrogate/],
    [
      'a number that would be rounded',
      '{"kind": "n", "input": 90071992547409931}',
      /90071992547409931.*as a string/,
    ],
    ['too large an input', `{"kind": "n", "input": "${'x'.repeat(1_000_001)}"}`, /at most 1 ?MB|1,000,000/i],
    [
      'too long a line',
      `{"kind": "n", "input": "${' '.repeat(8_000_001)}"}`,
      /bytes long; at most 8,000,000/,
    ],
  ])('with %s is refused with its line, and nothing is enqueued', async (_, line, message) => {
    const path = file('wrong.ndjson', `${numbered(2)}\n${line}\n${numbered(1)}`)
    const own = file('first.ndjson', line)
    const { code, stderr, stdout } = await run(['--file', path])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    if (!/array/.test(message.source)) expect(stderr).toMatch(message)
    expect(stderr).toContain(`${path}:4: `)
    expect(stderr).toContain('one line is wrong; nothing was enqueued.')
    expect((await run(['--file', own])).stderr).toMatch(/first.ndjson:1: /)
    if (/array/.test(message.source)) expect((await run(['--file', own])).stderr).toMatch(message)
    expect(await inputs()).toEqual([])
  })

  test.each([
    [
      'bytes that are not UTF-8',
      [...Buffer.from('{"kind": "n", "input": "'), 0xc3, 0x28],
      /:1: is not UTF-8 \(byte 25/,
    ],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00], /:1: is UTF-16/],
    ['gzip', [0x1f, 0x8b, 0x08, 0x00], /:1: is gzip/],
    ['a last line that is cut off', [...Buffer.from('{"kind": "n", "inp')], /:1: is cut off/],
  ])('with %s is refused', async (_, bytes, message) => {
    const path = file('bytes.ndjson', Uint8Array.from(bytes))
    expect(await run(['--file', path])).toMatchObject({ code: 2, stderr: expect.stringMatching(message) })
  })

  test('with many wrong lines has twenty of them said', async () => {
    const path = file('many.ndjson', `${'{}\n'.repeat(30)}${numbered(1)}`)
    const { stderr } = await run(['--file', path])
    expect(stderr.match(/kind is missing/g)).toHaveLength(20)
    expect(stderr).toContain('at least 20 lines are wrong; nothing was enqueued.')
  })

  test('comes through a pipe as well; then nothing is checked beforehand and nothing is half done', async () => {
    expect(await run(['--file', '-', '--json'], numbered(2_500))).toMatchObject({
      code: 0,
      stdout: '{"lines":2500,"jobs":2500,"existing":0,"dropped":0}\n',
    })
    await expectEach(2_500)
    const wrong = await run(['--file', '-'], `${numbered(2_500)}{}\n${numbered(1)}x\n`)
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/stdin:2501: .*\nstdin:2503: .*\n.*nothing/s),
    })
    await expectEach(2_500)
  })

  test('without a line is no error', async () => {
    expect(await run(['--file', file('empty.ndjson', '\n')])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^0 jobs/),
    })
  })
})

describe('CSV', () => {
  test('has columns for the job and for its input', async () => {
    const path = file(
      'people.csv',
      '\uFEFFkind,priority,to,input.name,amount:json,dedupeKey\r\n' +
        'mail,3,ada@example.org,"Ada ""the"", first\r\nof all",12.5,\r\n\r\n' +
        'mail,,bob@example.org,,,k\r\n',
    )
    expect(await run(['--file', path])).toMatchObject({ code: 0 })
    expect(await inputs()).toEqual([
      { to: 'ada@example.org', name: 'Ada "the", first\nof all', amount: 12.5 },
      { to: 'bob@example.org', name: '' },
    ])
    const rows = await db.sql('select priority, dedupe_key from rowlock.waiting order by id')
    expect(rows).toEqual([
      { priority: 3, dedupe_key: null },
      { priority: 0, dedupe_key: 'k' },
    ])
  })

  test('may have the whole input as JSON, another sign between cells, and its kind from the line', async () => {
    const path = file('jobs.txt', 'input;queue\n"{""a"": [1]}";q\n')
    const args = ['--file', path, '--format', 'csv', '--delimiter', ';', '--kind', 'k']
    expect(await run(args)).toMatchObject({ code: 0 })
    expect(await db.sql('select kind, queue, input from rowlock.waiting')).toEqual([
      { kind: 'k', queue: 'q', input: { a: [1] } },
    ])
  })

  test.each([
    [
      'a slip in the header',
      'kind,prioriy\n',
      1,
      /did you mean priority\? If it is input, call it input.prioriy/,
    ],
    ['a column twice', 'kind,to,input.to\n', 1, /names input.to twice/],
    ['a column without a name', 'kind,,to\n', 1, /without a name/],
    ['no kind', 'to\n', 1, /no column kind/],
    ['input and parts of it', 'kind,input,to\n', 1, /whole input/],
    ['another sign between cells', 'kind;to\n', 1, /--delimiter ';'/],
    ['a cell too many', 'kind,to\nk,a\n\nk,a,b\n', 4, /has 3 cells; the header has 2/],
    ['a quote inside a cell', 'kind,to\nk,a"b\n', 2, /quote inside a cell|never closes/],
    ['text behind a quote', 'kind,to\nk,"a"b\n', 2, /behind the closing quote/],
    ['a quote that never closes', 'kind,to\nk,a\nk,"b\nk,c\n', 3, /never closes/],
    ['a cell that is no JSON', 'kind,n:json\nk,{\n', 2, /n:json is no JSON/],
    ['a cell that is no number', 'kind,priority\nk,high\n', 2, /priority must be a whole number/],
  ])('with %s is refused with its line', async (_, text, line, message) => {
    const path = file('wrong.csv', text)
    const { code, stderr } = await run(['--file', path])
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr).toContain(`wrong.csv:${line}: `)
    expect(await inputs()).toEqual([])
  })
})

test.each([
  ['a file that is not there', ['--file', 'nowhere.csv'], /there is no file nowhere.csv/],
  ['a folder', ['--file', '.'], /is a folder/],
  ['a file of what?', ['--file', 'package.json5'], /there is no file|Give --format/],
  ['another format', ['--file', '-', '--format', 'xml'], /ndjson or csv/],
  ['two signs between cells', ['--file', '-', '--delimiter', ',,'], /one sign/],
  ['one key for all', ['--file', '-', '--dedupe-key', 'k'], /cannot be the same for all lines/],
  ['an input beside the file', ['k', '{}', '--file', '-'], /inputs come from the file/],
  ['an option that is wrong', ['--file', '-', '--delay', 'x'], /--delay must be text/],
])('%s is a mistake in the call: exit code 2', async (_, args, message) => {
  expect(await run(args, '')).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
})

describe('with a key', () => {
  test('stops where the queue is full, and goes on when there is room', async () => {
    await db.sql(`select rowlock.set_queue('default', '{"max_waiting": 1500}')`)
    const path = file('whole.ndjson', numbered(3_000))
    const first = await run(['--file', path, '--key', 'room'])
    expect(first.code).not.toBe(0)
    expect(first.stderr).toMatch(/2,000 lines .*queue default is full/s)
    expect(await db.value('select count(*)::integer from rowlock.waiting')).toBe(2_000)
    await db.sql(`select rowlock.set_queue('default', '{"max_waiting": null}')`)
    expect(await run(['--file', path, '--key', 'room'])).toMatchObject({ code: 0 })
    await expectEach(3_000)
  })

  test('goes on where it stopped, and says so', async () => {
    const wrong = `${numbered(2_400)}{}\n`
    const first = await run(['--file', '-', '--key', 'k'], wrong)
    expect(first).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/stdin:2401: .*2,000 lines before .* stay/s),
    })
    const path = file('whole.ndjson', numbered(3_000))
    const second = await run(['--file', path, '--key', 'k'])
    expect(second).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^3,000 jobs .* from line 2,001\n$/),
    })
    await expectEach(3_000)
    const third = await run(['--file', path, '--key', 'k', '--json'])
    expect(linesOf(third.stdout)).toEqual([
      { lines: 3_000, jobs: 3_000, existing: 0, dropped: 0, key: 'k', from: 3_000, wasFinished: true },
    ])
    const other = await run(['--file', file('other.ndjson', numbered(4_000)), '--key', 'k'])
    expect(other).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/goes on in line 3001.*IMPORT_CHANGED/s),
    })
    const options = await run(['--file', path, '--key', 'k', '--queue', 'q'])
    expect(options).toMatchObject({ code: 1, stderr: expect.stringMatching(/IMPORT_CHANGED/) })
    await expectEach(3_000)
  })

  test('a file that was checked has nothing enqueued when a line is wrong', async () => {
    const path = file('checked.ndjson', `${numbered(2_400)}{}\n`)
    expect(await run(['--file', path, '--key', 'k'])).toMatchObject({ code: 2 })
    expect(await inputs()).toEqual([])
  })
})

// Starts of many processes, one after the other.
describe('as a process', { timeout: 600_000 }, () => {
  const start = (args: readonly string[]) =>
    startTypeScript('src/cli/main.ts', ['enqueue', ...args], { DATABASE_URL: db.url })
  const lines = () => db.value(`select coalesce(max(lines), 0)::integer from rowlock.import`)
  /** Before a step of an import with a key: no file is through before a test has done something to its process. */
  let gate: Gate
  beforeAll(async () => {
    gate = await makeGate(db, 'import', 'lines')
  })
  /** Nobody puts a job in until it is let go. */
  const holdAll = async () => {
    const session = await db.session()
    await session.query('begin; lock table rowlock.waiting in share mode')
    return () => session.query('rollback')
  }
  const hasHeard = (child: ReturnType<typeof start>) =>
    until('it has heard', () => child.said.stderr.includes('the running step is being finished'))

  const sessions = (what: string) =>
    db.sql(
      `select ${what} from pg_stat_activity
        where datname = current_database() and application_name = 'rowlock cli'`,
    )

  test('killed again and again, it enqueues each line once', async () => {
    const dice = diceOf(seedOf('import'))
    const path = file('killed.ndjson', numbered(40_000))
    let kills = 0
    for (let far = 0; far < 30_000; far = await lines()) {
      const child = start(['--file', path, '--key', 'killed'])
      const at = far + 1 + dice.whole(9_000)
      await gate.close(at + 1_000)
      await until('it is far enough', async () => (await lines()) >= at, { everyMs: 2 })
      child.process.kill('SIGKILL')
      expect((await child.ended).signal).toBe('SIGKILL')
      kills++
      await gate.open()
      await until('its session is gone', async () => (await sessions('pid')).length === 0)
    }
    expect(await start(['--file', path, '--key', 'killed']).ended).toMatchObject({ code: 0 })
    expect(kills).toBeGreaterThan(1)
    await expectEach(40_000)
  })

  test('interrupted, it says what is committed and how to go on, and without a key that nothing is', async () => {
    const path = file('long.ndjson', numbered(60_000))
    await gate.close(5_000)
    const keyed = start(['--file', path, '--key', 'stopped'])
    await gate.untilReached()
    keyed.process.kill('SIGINT')
    await hasHeard(keyed)
    await gate.open()
    const ended = await keyed.ended
    expect(ended).toMatchObject({ code: 130, stdout: '' })
    const [, said] = /([\d,]+) lines \(.*\) are committed; go on with: rowlock enqueue --file/.exec(
      ended.stderr,
    )!
    expect(Number(said!.replaceAll(',', ''))).toBe(await lines())
    expect(await lines()).toBe(6_000)
    await db.sql('delete from rowlock.waiting')
    const letGo = await holdAll()
    const whole = start(['--file', path])
    await untilBlocked(db)
    whole.process.kill('SIGINT')
    await hasHeard(whole)
    await letGo()
    expect(await whole.ended).toMatchObject({
      code: 130,
      stdout: '',
      stderr: expect.stringMatching(/stopped: nothing was enqueued/),
    })
    expect(await inputs()).toEqual([])
  })

  test('whose database goes away says what is committed, or that nothing is, and exits 5', async () => {
    const path = file('gone.ndjson', numbered(60_000))
    const letGo = await holdAll()
    const child = start(['--file', path])
    await untilBlocked(db)
    expect(await sessions('pg_terminate_backend(pid)')).toHaveLength(1)
    expect(await child.ended).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/nothing was enqueued/),
    })
    await letGo()
    expect(await inputs()).toEqual([])
  })
})
