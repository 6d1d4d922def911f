// CPU time of the server, from the system's own accounting: other load on the machine hardly moves it.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

let tickUs: number | undefined

/**
 * CPU time of a postmaster and all its processes, the living and the ended. Undefined where there is no /proc.
 *
 * Unit: µs, in steps of one tick (10,000 µs) a process.
 * Source: proc(5), fields 14 to 17 of stat: utime, stime, cutime, cstime. Ended processes are in those of their parent.
 */
export function serverCpuUs(postmaster: number): number | undefined {
  for (;;) {
    const before = cpuOf(postmaster)
    if (before === undefined) return undefined
    let ticks = before.own + before.ended
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue
      const process = cpuOf(Number(pid))
      if (process?.parent === postmaster) ticks += process.own
    }
    // One that ended meanwhile stands in neither figure, or in both.
    if (cpuOf(postmaster)?.ended === before.ended) return ticks * tick()
  }
}

/** CPU time of one process. Unit: µs. Undefined where there is no /proc, or no such process. */
export function processCpuUs(pid: number): number | undefined {
  const process = cpuOf(pid)
  return process === undefined ? undefined : process.own * tick()
}

function tick(): number {
  tickUs ??= 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return tickUs
}

interface Cpu {
  readonly parent: number
  /** Of the process itself. Unit: ticks, as the next. */
  readonly own: number
  /** Of those of its children that ended and were waited for. */
  readonly ended: number
}

function cpuOf(pid: number): Cpu | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // From field 3 on: what stands before may hold blanks and brackets.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  return { parent: fields[1]!, own: fields[11]! + fields[12]!, ended: fields[13]! + fields[14]! }
}
