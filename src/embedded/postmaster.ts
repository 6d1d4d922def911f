// The postmaster of a cluster, as its pid file tells: does it run, and where does it listen?

import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { startedAt } from './alive.ts'
import { codeOf } from './failure.ts'

/** A postmaster that runs; its port is 0 until it has written it down. */
export interface Postmaster {
  readonly pid: number
  readonly port: number
}

/**
 * The postmaster that runs on the cluster, if one does. The pid file alone proves nothing: a killed postmaster
 * leaves it behind, and its number may be a zombie's or belong to somebody else by now.
 */
export function runningPostmaster(data: string): Postmaster | undefined {
  const lines = pidFile(data)
  const pid = Number(lines[0])
  if (!(pid > 0) || startedAt(pid) === undefined || !isPostmaster(pid, data)) return undefined
  return { pid, port: Number(lines[3] ?? 0) || 0 }
}

/**
 * Call before a start, when no postmaster runs: PostgreSQL refuses to start while the number in the pid file is
 * taken, even by a zombie or by another program. A number that nobody can have goes in its place. The file is not
 * removed, so PostgreSQL still checks that no backend of the dead postmaster is left in the shared memory named there.
 */
export function disownPidFile(data: string): void {
  const lines = pidFile(data)
  if (!(Number(lines[0]) > 0)) return
  lines[0] = String(2 ** 31 - 2)
  // O_NOFOLLOW: the folder belongs to the account, and root must not be led elsewhere by a link in it.
  const { O_WRONLY, O_TRUNC, O_NOFOLLOW } = constants
  const file = openSync(join(data, 'postmaster.pid'), O_WRONLY | O_TRUNC | (O_NOFOLLOW ?? 0))
  writeSync(file, lines.join('\n'))
  closeSync(file)
}

function pidFile(data: string): string[] {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

function isPostmaster(pid: number, data: string): boolean {
  if (process.platform === 'win32') return true
  if (process.platform !== 'linux') {
    return execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' }).includes('postgres')
  }
  try {
    // A postmaster changes into its data directory before it writes the pid file.
    return readlinkSync(`/proc/${pid}/cwd`) === data
  } catch (error) {
    // Somebody else's process: not ours to look into, and so not our postmaster.
    return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EACCES'
  }
}
