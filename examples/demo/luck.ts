// What goes wrong at a receiver, and when: drawn from the record's name, so that every run has the same bad luck.

import { createHash } from 'node:crypto'

/**
 * What happens to one delivery. `…_after` means that the receiver has taken it to its books, and does not get
 * to say so.
 */
export type Luck = 'fine' | 'slow' | 'busy' | 'error' | 'error_after' | 'drop' | 'drop_after'

const SHARES: readonly (readonly [Luck, number])[] = [
  ['slow', 4],
  ['busy', 5],
  ['error', 7],
  ['error_after', 3],
  ['drop', 4],
  ['drop_after', 4],
]

/** The luck of the nth delivery of a record. From the fourth on it is fine: a demo must end. */
export function drawLuck(reference: string, delivery: number): Luck {
  if (delivery > 3) return 'fine'
  const drawn = createHash('sha256').update(`${reference}/${delivery}`).digest().readUInt16BE() % 100
  let upTo = 0
  for (const [luck, share] of SHARES) {
    upTo += share
    if (drawn < upTo) return luck
  }
  return 'fine'
}
