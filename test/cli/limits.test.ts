// Limits of a queue from the command line: as people say them, with their use, and what is refused.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CallOptions, call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('cli limits')
})
afterAll(() => db.drop())

const run = (args: readonly string[], options: CallOptions = {}) => call(args, { url: db.url, ...options })

test('limits of a queue are set as people say them, shown with their use, and taken away', async () => {
  const env = { NO_COLOR: '1' }
  const set = [
    '--max-running',
    '3',
    '--rate',
    '100/s',
    '--burst',
    '10',
    '--max-waiting',
    '5000',
    '--when-full',
    'drop',
  ]
  const { stdout } = await run(['queue', 'mail', ...set], { env })
  expect(stdout).toMatch(/running +0 of at most 3\n/)
  expect(stdout).toMatch(/max running +3 over all workers\n/)
  expect(stdout).toMatch(/rate +100\/s, burst 10\n/)
  expect(stdout).toMatch(/max waiting +about 5,000, then drop\n/)
  for (const [said, rate] of [
    ['20/5min', { starts: 20, perMs: 300_000, burst: 1 }],
    ['1000/day', { starts: 1_000, perMs: 86_400_000, burst: 1 }],
    ['30/ 2 h', { starts: 30, perMs: 7_200_000, burst: 1 }],
  ] as const) {
    const answer = await run(['queue', 'mail', '--rate', said, '--json'])
    expect(linesOf(answer.stdout)[0]).toMatchObject({ rate })
  }
  const none = ['--max-running', 'none', '--rate', 'none', '--max-waiting', 'none']
  expect(linesOf((await run(['queue', 'mail', ...none, '--json'])).stdout)[0]).toMatchObject({
    maxRunning: null,
    rate: null,
    maxWaiting: null,
    whenFull: null,
  })
  for (const [wrong, says] of [
    [['--rate', '100'], /starts in a time, such as '100\/s'/],
    [['--rate', '1/month'], /starts in a time, such as '100\/s'/],
    [['--rate', '0/s'], /rate\.starts must be/],
    [['--burst', '3'], /--burst goes with --rate/],
    [['--rate', 'none', '--burst', '3'], /--burst goes with --rate/],
    [['--max-running', '0'], /whole number from 1 to 100,000/],
    [['--when-full', 'wait'], /refuse/],
    [['--when-full', 'drop'], /max_waiting/],
  ] as const) {
    const refused = await run(['queue', 'mail', ...wrong], { env })
    expect([wrong, refused.code, refused.stdout]).toEqual([wrong, 2, ''])
    expect(refused.stderr).toMatch(says)
  }
})
