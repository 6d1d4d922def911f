// The symbolic links that npm packages cannot carry, and that install scripts, often blocked, should have made.

import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import type { Account } from './account.ts'
import { cacheFolder } from './cache.ts'
import { codeOf } from './failure.ts'

interface Link {
  readonly source: string
  readonly target: string
}

/**
 * Make the links that the package lists and that are missing: in place, or, where that is not allowed, in a folder
 * of our own.
 *
 * @returns what must be added to the environment of the programs: nothing, or where to look for the libraries.
 */
export function ensureLinks(root: string, account: Account | undefined): Record<string, string> {
  const missing = listed(root).filter((link) => !existsSync(link.target) && !made(link.source, link.target))
  if (missing.length === 0) return {}
  const folder = cacheFolder('lib', root, account)
  for (const link of missing) made(link.source, join(folder, basename(link.target)))
  // Both: a library found through the folder looks for its own beside itself, and they are not all links.
  return {
    [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']:
      `${folder}${delimiter}${join(root, 'lib')}`,
  }
}

function listed(root: string): Link[] {
  const list = join(root, 'pg-symlinks.json')
  if (!existsSync(list)) return []
  // The paths are relative to the package, whose folder `native` is our root.
  const place = (path: string) => join(root, path.replace(/^native\//, ''))
  return (JSON.parse(readFileSync(list, 'utf8')) as Link[]).map((link) => ({
    source: place(link.source),
    target: place(link.target),
  }))
}

function made(source: string, target: string): boolean {
  try {
    symlinkSync(dirname(source) === dirname(target) ? basename(source) : source, target)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return existsSync(target)
    return false
  }
}
