// Whether a worker's lease held at an instant, by what the database wrote down.

import type { LeaseRow } from '../history.ts'

/** The leases of all workers over time. */
export interface Leases {
  /** Was the lease granted beyond this instant, by what was known until `known`? */
  heldAt(workerId: string, at: number, known?: number): boolean
  pidOf(workerId: string): number | null | undefined
}

interface Life {
  readonly pid: number | null
  readonly rows: LeaseRow[]
}

/**
 * Rows in the order in which they were written, each under the lock of its worker's row: from that moment a lease is
 * extended, though others see it later, for its end is decided under the same lock. A beat after the end extends
 * nothing.
 */
export function leasesOf(rows: readonly LeaseRow[]): Leases {
  const lives = new Map<string, Life>()
  for (const row of rows) {
    const life = lives.get(row.workerId)
    if (life === undefined) lives.set(row.workerId, { pid: row.pid, rows: [row] })
    else if (row.op === 'delete' || row.at <= life.rows.at(-1)!.expiresAt) life.rows.push(row)
  }
  return {
    // From the end: what is asked about is mostly recent, and a beat comes every few hundred milliseconds.
    heldAt(workerId, at, known = at) {
      const { rows: life } = lives.get(workerId) ?? { rows: [] as LeaseRow[] }
      let low = 0
      let high = life.length
      while (low < high) {
        const middle = (low + high) >> 1
        if (life[middle]!.at <= known) low = middle + 1
        else high = middle
      }
      const last = life[low - 1]
      return last !== undefined && last.op !== 'delete' && last.expiresAt > at
    },
    pidOf: (workerId) => lives.get(workerId)?.pid,
  }
}
