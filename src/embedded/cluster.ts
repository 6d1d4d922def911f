// The cluster: made once by initdb, under another name, so that what is there is whole.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asAccount } from './account.ts'
import type { Binaries } from './binaries.ts'
import { lastLines, unavailable } from './failure.ts'
import type { Home } from './home.ts'
import { ownTree } from './own.ts'

/**
 * Make the home's cluster when it has none, with a random password for the superuser.
 *
 * Errors: EMBEDDED_UNAVAILABLE when initdb fails, with what it said last, or when the cluster is of another major.
 */
export async function ensureCluster(home: Home, binaries: Binaries, sync: boolean): Promise<void> {
  if (existsSync(join(home.data, 'PG_VERSION'))) {
    sameMajor(home, binaries)
    if (home.account) ownTree(home.data, home.account)
    return
  }
  const draft = join(home.path, 'data.new')
  const pwfile = join(home.path, 'password.new')
  rmSync(draft, { recursive: true, force: true })
  rmSync(pwfile, { force: true })
  const password = randomBytes(24).toString('base64url')
  mkdirSync(draft, { mode: 0o700 })
  writeFileSync(pwfile, `${password}\n`, { mode: 0o600, flag: 'wx' })
  if (home.account) {
    for (const path of [draft, pwfile]) chownSync(path, home.account.uid, home.account.gid)
  }
  try {
    await initdb(home, binaries, ['-D', draft, `--pwfile=${pwfile}`, ...(sync ? [] : ['--no-sync'])])
    rmSync(home.password, { force: true })
    writeFileSync(home.password, `${password}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(draft, home.data)
  } finally {
    rmSync(pwfile, { force: true })
    rmSync(draft, { recursive: true, force: true })
  }
}

function sameMajor(home: Home, binaries: Binaries): void {
  const major = readFileSync(join(home.data, 'PG_VERSION'), 'utf8').trim()
  if (Number(major) === binaries.major) return
  throw unavailable(
    `the cluster in ${home.path} is of PostgreSQL ${major}, the programs are of ${binaries.major}. ` +
      `Name another dataDir, or install the package for ${major}.`,
  )
}

async function initdb(home: Home, binaries: Binaries, args: string[]): Promise<void> {
  const fixed = ['-U', 'postgres', '-A', 'scram-sha-256', '--locale=C', '--encoding=UTF8']
  const child = spawn(join(binaries.bin, 'initdb'), [...fixed, ...args], {
    ...asAccount(home.account),
    env: binaries.env,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk
    })
  }
  const code = await new Promise((resolve, reject) => {
    child.once('error', (error) => reject(unavailable(`initdb could not be run: ${error.message}`, error)))
    child.once('close', (exit, signal) => resolve(exit ?? signal))
  })
  if (code !== 0) throw unavailable(`initdb failed (${code}):\n${lastLines(said)}`)
}
