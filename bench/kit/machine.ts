// What it was measured on: stands beside every result.

import os from 'node:os'

/** The machine at the end of a run. */
export interface Machine {
  readonly cpu: string
  readonly cpus: number
  readonly memoryGb: number
  readonly system: string
  readonly node: string
  /** Load of the last 1 and 15 minutes, the bench's own in it: more than it can make says that others were there. */
  readonly load: readonly number[]
}

/** This one, now. */
export function machine(): Machine {
  const [one, , fifteen] = os.loadavg()
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cpus: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    load: [one!, fifteen!].map((n) => Math.round(n * 10) / 10),
  }
}
