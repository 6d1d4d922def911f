// Is a process really there? A zombie is not, nor is another process that got the same number later.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * When the process was started, as an opaque text that with the id names it for good; undefined when it is gone or
 * a zombie. `kill(pid, 0)` would call a zombie alive.
 */
export function startedAt(pid: number): string | undefined {
  if (process.platform === 'linux') return fromProc(pid)
  return process.platform === 'win32' ? fromSignal(pid) : fromPs(pid)
}

/** Wait until a process is gone. Returns whether it went within the bound. */
export async function untilGone(pid: number, boundMs: number): Promise<boolean> {
  const started = startedAt(pid)
  const deadline = performance.now() + boundMs
  while (started !== undefined && startedAt(pid) === started) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

function fromProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name, in parentheses, may hold spaces and parentheses itself; what follows its end is regular.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

function fromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}

function fromSignal(pid: number): string | undefined {
  try {
    process.kill(pid, 0)
    return 'running'
  } catch {
    return undefined
  }
}
