// Where the demo keeps its cluster and its pictures: in the project, or, where that cannot be written, in the
// system's folder for what may be lost.

import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface StateFolder {
  readonly path: string
  /** Of this run alone. */
  readonly run: string
  /** Remove what is this run's alone, and everything if nobody would find it again. */
  clear(): void
}

const project = fileURLToPath(new URL('../../', import.meta.url))

export function openStateFolder(): StateFolder {
  const isKept = canMake(wanted())
  const path = isKept ? wanted() : mkdtempSync(join(tmpdir(), 'rowlock-demo-'))
  sweep(path)
  const run = join(path, `run-${process.pid}`)
  mkdirSync(run, { recursive: true })
  return { path, run, clear: () => rmSync(isKept ? run : path, { recursive: true, force: true }) }
}

/** One for each account, so that a demo as root does not stand in the way of one as an ordinary user. */
const wanted = () => join(project, '.state/demo', String(process.getuid?.() ?? 'user'))

function canMake(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true })
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** What runs that were killed left behind. */
function sweep(path: string): void {
  for (const name of readdirSync(path)) {
    const pid = Number(name.match(/^run-(\d+)$/)?.[1])
    if (pid > 0 && !isAlive(pid)) rmSync(join(path, name), { recursive: true, force: true })
  }
}

/** Is there a process of this number? */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM'
  }
}
