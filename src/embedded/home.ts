// The folder of one server: where its cluster, password, log and turns are, and who owns them.

import { chmodSync, mkdirSync, readdirSync, realpathSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Account, findAccount, isRoot } from './account.ts'
import { cacheFolder } from './cache.ts'
import { codeOf, invalid, unavailable } from './failure.ts'
import { passable } from './reach.ts'

/** Where everything of one server is. */
export interface Home {
  readonly path: string
  /** The cluster: PostgreSQL's data directory. */
  readonly data: string
  readonly password: string
  readonly settings: string
  readonly log: string
  readonly turns: string
  /** How to reach the keeper. */
  readonly keeper: string
  /** The account PostgreSQL runs as, when we are root. */
  readonly account: Account | undefined
}

/**
 * Open, and when missing make, the home for a folder that was asked for. When root asks for a folder that the
 * account cannot reach, the home is a folder below the temporary one, always the same for the same path.
 *
 * Errors: INVALID_OPTION when the folder holds something else; EMBEDDED_UNAVAILABLE.
 */
export function openHome(asked: string, log: (message: string) => void): Home {
  if (!isRoot()) {
    restrict(claim(asked), 0o700)
    return at(asked, undefined)
  }
  const account = findAccount(ownerOf(join(asked, 'data')))
  // The account passes through; only root sees what is in it and writes there.
  restrict(claim(asked), 0o711)
  if (passable(asked, account)) return at(asked, account)
  removeIfEmpty(asked)
  const path = cacheFolder('data', asked, account)
  log(`${account.name} cannot reach ${asked} (a folder above it is closed); the data is in ${path} instead.`)
  return at(path, account)
}

function at(path: string, account: Account | undefined): Home {
  const real = realpathSync(path)
  return {
    path: real,
    data: join(real, 'data'),
    password: join(real, 'password'),
    settings: join(real, 'postgresql.conf'),
    log: join(real, 'postgres.log'),
    turns: join(real, 'turns'),
    keeper: join(real, 'keeper.json'),
    account,
  }
}

function claim(path: string): string {
  try {
    mkdirSync(path, { recursive: true })
    const names = readdirSync(path)
    if (names.length > 0 && !names.includes('turns')) {
      throw invalid(
        'dataDir',
        `${path} holds something else; name an empty folder, or one that is not there yet`,
      )
    }
    mkdirSync(join(path, 'turns'), { recursive: true })
    return path
  } catch (error) {
    if (codeOf(error) === 'INVALID_OPTION') throw error
    throw unavailable(`${path} cannot be used: ${(error as Error).message}. Name another dataDir.`, error)
  }
}

function restrict(path: string, mode: number): void {
  if (statSync(path).uid === process.getuid?.()) chmodSync(path, mode)
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(join(path, 'turns'))
    rmdirSync(path)
  } catch {
    // It is in use, or a link; it does no harm.
  }
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid
  } catch {
    return undefined
  }
}
