// A copy of PostgreSQL's programs where the account can reach them.

import { chmodSync, cpSync, existsSync, lstatSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Account } from './account.ts'
import { cacheFolder } from './cache.ts'

/** Copy a tree of programs into a folder of our own, once per state of the tree, readable for everybody. */
export function copyTree(root: string, account: Account): string {
  const stats = statSync(join(root, 'bin', 'postgres'))
  const folder = cacheFolder('postgres', `${root} ${stats.size} ${stats.mtimeMs}`, account)
  const copy = join(folder, 'native')
  if (existsSync(copy)) return copy
  // Made under another name and renamed: a copy that is there is whole, however its maker ended.
  const draft = join(folder, `draft-${process.pid}-${Math.random().toString(36).slice(2)}`)
  cpSync(root, draft, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
  open(draft)
  try {
    renameSync(draft, copy)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(copy)) throw error
  }
  return copy
}

function open(path: string): void {
  const stats = lstatSync(path)
  if (stats.isSymbolicLink()) return
  const runs = stats.isDirectory() || (stats.mode & 0o100) !== 0
  chmodSync(path, runs ? 0o755 : 0o644)
  if (stats.isDirectory()) for (const name of readdirSync(path)) open(join(path, name))
}
