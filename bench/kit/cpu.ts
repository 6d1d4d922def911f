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
  let own: number[]
  try {
    own = fieldsOf(String(postmaster))
  } catch {
    return undefined
  }
  let ticks = own[11]! + own[12]! + own[13]! + own[14]!
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const fields = fieldsOf(pid)
      if (fields[1] === postmaster) ticks += fields[11]! + fields[12]!
    } catch {
      // Ended meanwhile: counted with its parent from now on.
    }
  }
  return ticks * tick()
}

/** CPU time of one process. Unit: µs. Undefined where there is no /proc, or no such process. */
export function processCpuUs(pid: number): number | undefined {
  try {
    const fields = fieldsOf(String(pid))
    return (fields[11]! + fields[12]!) * tick()
  } catch {
    return undefined
  }
}

function tick(): number {
  tickUs ??= 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return tickUs
}

/** From field 3 on: what stands before may hold blanks and brackets. */
function fieldsOf(pid: string): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
}
