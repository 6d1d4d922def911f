// Peers are no dependency of Rowlock: they are installed into bench/ when the bench first runs.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Install what is missing, and say so. That it can't be is said too; whose package is missing does not take part. */
export function installPeers(folder: string, say: (line: string) => void): void {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const missing = Object.keys(dependencies).filter((name) => !existsSync(join(folder, 'node_modules', name)))
  if (missing.length === 0) return
  say(`installing the peers into bench/ (missing: ${missing.join(', ')})`)
  const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', flags, { cwd: folder, stdio: ['ignore', 2, 2] })
  if (status !== 0) say('npm ci failed: peers that are missing do not take part')
}
