// One at a time among processes: a lock in a folder that no killed holder can keep.

import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startedAt } from './alive.ts'
import { codeOf, unavailable } from './failure.ts'

/**
 * Do some work while nobody else does any in the same folder.
 *
 * Each turn is a file with the next number, made by link(2), so that just one process gets it, and its holder stands
 * in it from the first instant. A turn is over when its file is empty or its holder is gone. Nothing is ever taken
 * away from a holder, as stealing a stale lock file would: two thieves could both believe they had won.
 *
 * Errors: EMBEDDED_UNAVAILABLE when the turn did not come within the bound.
 */
export async function inTurn<T>(folder: string, boundMs: number, work: () => Promise<T>): Promise<T> {
  mkdirSync(folder, { recursive: true })
  const mine = await take(folder, boundMs)
  try {
    return await work()
  } finally {
    endTurn(mine)
  }
}

async function take(folder: string, boundMs: number): Promise<string> {
  const draft = join(folder, `draft-${process.pid}-${Math.random().toString(36).slice(2)}`)
  writeFileSync(draft, `${process.pid} ${startedAt(process.pid)}`)
  // Read by whoever waits, of another account too: root's umask may hide it, and then nobody sees that it is over.
  chmodSync(draft, 0o644)
  const deadline = performance.now() + boundMs
  try {
    for (;;) {
      const last = latest(folder)
      if (last > 0 && held(join(folder, String(last)))) {
        if (performance.now() > deadline) {
          throw unavailable(`another process has been starting in ${folder} for ${boundMs} ms; is it stuck?`)
        }
        await sleep(20 + Math.random() * 20)
      } else if (tryNext(folder, draft, last + 1)) {
        return join(folder, String(last + 1))
      }
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

function tryNext(folder: string, draft: string, number: number): boolean {
  const file = join(folder, String(number))
  try {
    linkSync(draft, file)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
  // Whoever looked long ago may have made a number that was swept since: then a later one exists.
  if (latest(folder) > number) {
    rmSync(file, { force: true })
    return false
  }
  for (const old of numbers(folder)) if (old < number - 8) rmSync(join(folder, String(old)), { force: true })
  return true
}

function held(file: string): boolean {
  try {
    const [pid, started] = readFileSync(file, 'utf8').split(' ')
    return pid !== undefined && pid !== '' && startedAt(Number(pid)) === started
  } catch (error) {
    return codeOf(error) !== 'ENOENT'
  }
}

function endTurn(file: string): void {
  try {
    truncateSync(file)
  } catch {
    // The folder was removed meanwhile, and the turn with it.
  }
}

function numbers(folder: string): number[] {
  return readdirSync(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function latest(folder: string): number {
  return Math.max(0, ...numbers(folder))
}
