// Can another account get at a path? Judged from owners and modes, without becoming that account.

import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Account } from './account.ts'

/** May the account read the path (and enter it, or run it, when it is a folder or a program) and pass all above it? */
export function reachable(path: string, account: Account): boolean {
  try {
    const real = realpathSync(path)
    const stats = statSync(real)
    const wanted = stats.isDirectory() || (stats.mode & 0o111) !== 0 ? 0o5 : 0o4
    return allows(stats, account, wanted) && passable(dirname(real), account)
  } catch {
    return false
  }
}

/** May the account pass through the folder and all above it? */
export function passable(folder: string, account: Account): boolean {
  const real = realpathSync(folder)
  if (!allows(statSync(real), account, 0o1)) return false
  return dirname(real) === real || passable(dirname(real), account)
}

function allows(stats: Stats, account: Account, bits: number): boolean {
  const shift = stats.uid === account.uid ? 6 : stats.gid === account.gid ? 3 : 0
  return ((stats.mode >> shift) & bits) === bits
}
