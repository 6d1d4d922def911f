// `rowlock enqueue` of one job: every option, every slip, and what is answered where.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('cli enqueue')
})
afterEach(() => db.sql('delete from rowlock.waiting; delete from rowlock.dedupe'))
afterAll(() => db.drop())

const enqueue = (args: readonly string[], input?: string) =>
  call(['enqueue', ...args], { url: db.url, ...(input !== undefined && { input }) })
const jobs = () => db.sql('select * from rowlock.waiting order by id')

describe('rowlock enqueue', () => {
  test('answers the id on stdout, and says the rest on stderr', async () => {
    const { code, stdout, stderr } = await enqueue(['send-email', '{"to": "ada@example.org"}'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'enqueued: send-email in queue default\n' })
    const [job] = await jobs()
    expect(stdout).toBe(`${job.id}\n`)
    expect(job).toMatchObject({ kind: 'send-email', queue: 'default', input: { to: 'ada@example.org' } })
  })

  test('says that a full queue dropped it, and fails where it refuses', async () => {
    await enqueue(['mail', '--queue', 'small'])
    await db.sql(`select rowlock.set_queue('small', '{"max_waiting": 1, "when_full": "drop"}')`)
    expect(await enqueue(['mail', '--queue', 'small'])).toEqual(
      expect.objectContaining({ code: 0, stdout: '', stderr: 'dropped: queue small is full\n' }),
    )
    const { stdout } = await enqueue(['mail', '--queue', 'small', '--json'])
    expect(linesOf(stdout)).toMatchObject([{ created: false, reason: 'queue_full' }])
    await db.sql(`select rowlock.set_queue('small', '{"when_full": null}')`)
    const refused = await enqueue(['mail', '--queue', 'small'])
    expect(refused).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/queue small is full/),
    })
    expect(await jobs()).toHaveLength(1)
  })

  test('knows every option of the API', async () => {
    const args = [
      ...[
        'erp',
        '[1, "two", null]',
        '--queue',
        'q',
        '--priority',
        '-3',
        '--delay',
        '1.5h',
        '--expires-in',
        '2 days',
      ],
      ...['--tenant-id', 't', '--dedupe-key', 'd', '--idempotency-key', 'i', '--max-attempts', '7'],
      ...[
        '--backoff',
        '{"type": "fixed", "delay_ms": 50}',
        '--timeout',
        '1 minute 30 s',
        '--metadata',
        '{"a": 1}',
      ],
    ]
    expect(await enqueue(args)).toMatchObject({ code: 0 })
    const [row] = await db.sql(
      `select *, available_at - enqueued_at = '90 min' as late, expires_at - enqueued_at = '2 days' as expires,
              timeout = '90 s' as limited from rowlock.waiting`,
    )
    expect(row).toMatchObject({
      ...{ queue: 'q', kind: 'erp', priority: -3, tenant_id: 't', dedupe_key: 'd', idempotency_key: 'i' },
      ...{
        max_attempts: 7,
        backoff: { type: 'fixed', delay_ms: 50 },
        metadata: { a: 1 },
        input: [1, 'two', null],
      },
      ...{ late: true, expires: true, limited: true },
    })
    await enqueue(['at', '--available-at', '2030-01-31T12:00:00+02', '--expires-at', '2030-02-01 00:00Z'])
    const [, at] = await jobs()
    expect([at.available_at, at.expires_at]).toEqual([
      new Date('2030-01-31T10:00:00Z'),
      new Date('2030-02-01T00:00:00Z'),
    ])
  })

  test('takes the input from stdin, and {} where none is given', async () => {
    expect(await enqueue(['a', '-'], '\uFEFF{"n": 1}\r\n')).toMatchObject({ code: 0 })
    expect(await enqueue(['a'])).toMatchObject({ code: 0 })
    expect((await jobs()).map(({ input }) => input)).toEqual([{ n: 1 }, {}])
  })

  test('finds a job that is there already, and that is no error', async () => {
    const first = await enqueue(['a', '--dedupe-key', 'k', '--json'])
    const [{ id }] = linesOf(first.stdout)
    expect(linesOf(first.stdout)).toEqual([{ id, created: true }])
    const second = await enqueue(['a', '--dedupe-key', 'k'])
    expect(second).toMatchObject({
      code: 0,
      stdout: `${id}\n`,
      stderr: expect.stringMatching(/nothing enqueued/),
    })
    expect(linesOf((await enqueue(['a', '--dedupe-key', 'k', '--json'])).stdout)).toEqual([
      { id, created: false },
    ])
  })

  test.each([
    ['no kind', [], /which kind of job\?/],
    ['stdin for a kind', ['-', '--queue', 'q'], /Did you mean rowlock enqueue --queue q --file -\?/],
    ['an input that is no JSON', ['a', '{to: x}'], /input is no JSON.*In a shell/s],
    [
      'an input that JavaScript would round',
      ['a', '{"n": 12345678901234567}'],
      /12345678901234567.*as a string/,
    ],
    ['NUL', ['a', '{"t": "\\u0000"}'], /NUL/],
    ['an input that is too large', ['a', JSON.stringify('x'.repeat(1_000_001))], /INPUT_TOO_LARGE/],
    ['a length without a unit', ['a', '--delay', '5'], /--delay must be text with its unit/],
    ['a length that has no length', ['a', '--timeout', '1 month'], /--timeout must be text/],
    ['a timeout out of range', ['a', '--timeout', '8d'], /--?timeout must be from 10ms to 7d/],
    [
      'an instant without a zone',
      ['a', '--available-at', '2030-01-01T00:00:00'],
      /--available-at must be an instant with its zone/,
    ],
    ['an instant that is none', ['a', '--available-at', '2030-13-01T00:00:00Z'], /--available-at/],
    [
      'two that exclude each other',
      ['a', '--available-at', '2030-01-01T00:00Z', '--delay', '1s'],
      /--delay or --available-at, not both/,
    ],
    ['a priority out of range', ['a', '--priority', '11'], /--priority must be .* -10 to 10; got 11/],
    ['a word for a number', ['a', '--max-attempts', 'many'], /--max-attempts must be a whole number/],
    ['metadata that is no object', ['a', '--metadata', '[]'], /--metadata must be a plain object/],
    [
      'a backoff of no kind',
      ['a', '--backoff', '{"type": "fixd"}'],
      /--backoff must be JSON such as {"type": "fixed".*did you mean 'fixed'/,
    ],
    ['an empty key', ['a', '--dedupe-key', ''], /--dedupe-key must not be empty/],
    ['a queue with blanks', ['a', '--queue', ' q'], /--queue must have no white space/],
    ['a slip in an option', ['a', '--tenat-id', 'x'], /Did you mean --tenant-id/],
    ['a part of an option', ['a', '--tenant', 'x'], /Did you mean --tenant-id\?/],
    ['a key without a file', ['a', '--key', 'k'], /--key goes with --file/],
    ['a kind twice', ['a', '--kind', 'k'], /--kind goes with --file/],
  ])('%s is a mistake in the call: exit code 2, and nothing is enqueued', async (_, args, message) => {
    const ended = await enqueue(args)
    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
    expect(ended.stderr.length).toBeLessThan(600)
    expect(await jobs()).toEqual([])
  })

  test('without a database exits 5', async () => {
    const ended = await call(['enqueue', 'a'], { url: 'postgres://127.0.0.1:1/x' })
    expect(ended).toMatchObject({ code: 5, stdout: '' })
  })
})
