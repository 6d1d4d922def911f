// A folder of our own below the system's temporary folder, found again by what it is for.

import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, isRoot } from './account.ts'
import { codeOf, unavailable } from './failure.ts'
import { passable } from './reach.ts'

/**
 * The folder for one purpose and key: the same answer each time. The temporary folder is everybody's, so what is
 * found there is used only when it is a folder, no link, owned by this user and writable by nobody else. For root
 * it stays root's (mode 0711), so that the account which runs PostgreSQL cannot plant links for root to follow.
 *
 * Errors: EMBEDDED_UNAVAILABLE when somebody else's is in the way, or no temporary folder can be reached.
 */
export function cacheFolder(purpose: string, key: string, account?: Account): string {
  const uid = process.getuid?.() ?? 0
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 16)
  const path = join(temporary(account), `rowlock-${purpose}-${uid}-${hash}`)
  const mode = isRoot() ? 0o711 : 0o700
  try {
    mkdirSync(path, { mode })
    chmodSync(path, mode)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw unavailable(`${path} could not be made.`, error)
  }
  const stats = lstatSync(path)
  const ours = process.platform === 'win32' || (stats.uid === uid && (stats.mode & 0o022) === 0)
  if (!stats.isDirectory() || !ours) {
    throw unavailable(`${path} is in the way and not ours alone. Look at who made it, and remove it.`)
  }
  return path
}

function temporary(account: Account | undefined): string {
  const folders = process.platform === 'win32' ? [tmpdir()] : [tmpdir(), '/tmp', '/var/tmp']
  const found = folders.find((folder) => {
    try {
      return account === undefined || passable(folder, account)
    } catch {
      return false
    }
  })
  if (found) return realpathSync(found)
  throw unavailable(`the account ${account?.name} can reach no temporary folder (${folders.join(', ')}).`)
}
