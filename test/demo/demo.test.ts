// The demo as a reader starts it: real processes, real books.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startedAt } from '../../src/embedded/alive.ts'
import { until } from '../support/until.ts'

const demo = fileURLToPath(new URL('../../demo', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(args: string[], program = demo): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ROWLOCK_DEMO_PATIENCE: '5' }
    const child = spawn(program, args, { cwd: tmpdir(), env, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

test('./demo --once --json ends with an account that balances, and leaves nothing running', async () => {
  // By a link from elsewhere: the demo finds its own folder.
  const folder = mkdtempSync(join(tmpdir(), 'rowlock link-'))
  symlinkSync(demo, join(folder, 'show me'))
  const { code, stdout, stderr } = await run(['--once', '--json'], join(folder, 'show me'))
  rmSync(folder, { recursive: true })
  expect(stdout, stderr).toMatch(/^\{.*\}\n$/)
  const account = JSON.parse(stdout)
  expect({ code, lost: account.lost, twice: account.delivered_twice }, stderr).toEqual({
    code: 0,
    lost: 0,
    twice: 0,
  })
  expect(Object.keys(account).slice(0, 10)).toEqual([
    'enqueued',
    'done',
    'retried',
    'reclaimed',
    'failed',
    'dead_lettered',
    'cancelled',
    'lost',
    'delivered_twice',
    'seconds',
  ])
  const { enqueued, done, failed, dead_lettered, cancelled } = account
  expect(done + failed + dead_lettered + cancelled).toBe(enqueued)
  for (const name of ['retried', 'reclaimed', 'failed', 'dead_lettered', 'cancelled', 'rolled_back']) {
    expect(account[name], name).toBeGreaterThanOrEqual(1)
  }
  expect(account.records).toBe(329)
  const left = () => account.pids.filter((pid: number) => startedAt(pid) !== undefined)
  await until(`processes ${left()} have ended`, () => left().length === 0)
}, 480_000)

test('an unknown argument is refused, and --help says what is known', async () => {
  const refused = await run(['--onec'])
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('unknown argument: --onec')
  expect(refused.stdout).toBe('')
  const folder = await run(['--pictures', '/no/such/folder'])
  expect(folder.code).toBe(2)
  const help = await run(['--help'])
  expect(help.code).toBe(0)
  for (const name of ['--once', '--json', '--pictures']) expect(help.stdout).toContain(name)
})
