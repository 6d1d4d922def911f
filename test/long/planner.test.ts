// The whole file of tests of claims on servers whose planner lacks one thing after the other, and with both forced plan
// caches: the same claims, whatever the plan. ROWLOCK_LONG=1 (`./check --long`).

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from 'rowlock/embedded'
import { describe, expect, test } from 'vitest'
import { IS_LONG } from '../support/long.ts'
import { programs } from '../support/majors.ts'
import { ROOT } from '../support/tree.ts'

const off = (...names: string[]) => Object.fromEntries(names.map((name) => [`enable_${name}`, false]))
const PLANNERS: readonly (readonly [string, Readonly<Record<string, string | boolean>>])[] = [
  ['without sequential scans', off('seqscan')],
  ['without index scans', off('indexscan', 'indexonlyscan', 'bitmapscan')],
  ['without hash and merge joins', off('hashjoin', 'mergejoin', 'material', 'memoize')],
  ['without nested loops', off('nestloop')],
  ['without sorts and hash aggregates', off('sort', 'hashagg')],
  ['without TID scans', off('tidscan')],
  ['with generic plans', { plan_cache_mode: 'force_generic_plan' }],
  ['with custom plans', { plan_cache_mode: 'force_custom_plan' }],
]

describe.runIf(IS_LONG)('claims are the same', { timeout: 600_000 }, () => {
  test.each(PLANNERS)('%s', async (_, settings) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'rowlock-planner-'))
    const server = await startEmbedded({
      ...programs(),
      dataDir,
      settings: { ...settings, max_connections: 100 },
      fsync: false,
    })
    try {
      const { code, said } = await runTests('test/engine/claim.test.ts', server.url)
      expect(code, said.slice(-6_000)).toBe(0)
      expect(Number(/Tests +(\d+) passed/.exec(said)?.[1])).toBeGreaterThan(20)
    } finally {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})

/** A run of its own of one file, on this server. */
function runTests(file: string, url: string): Promise<{ code: number | null; said: string }> {
  const env: NodeJS.ProcessEnv = { ...process.env, ROWLOCK_TEST_URL: url, NO_COLOR: '1' }
  for (const name of Object.keys(env)) {
    if (/^(VITEST|TEST$|NODE_ENV$|MODE$|DEV$|PROD$|SSR$|ROWLOCK_LONG$|ROWLOCK_TEST_POOLER$)/.test(name)) {
      delete env[name]
    }
  }
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', file], { cwd: ROOT, env })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, said })))
}
