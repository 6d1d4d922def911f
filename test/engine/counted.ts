// Counts what statements of one session read and log, by EXPLAIN: figures that no other load moves.

import type pg from 'pg'

/** What a statement cost, those inside of it included. */
export interface Counted {
  /** Blocks that were looked at, whether they were in memory or not. */
  readonly blocks: number
  /** NaN where a page was written in full after a checkpoint: that is a cost of the checkpoint. */
  readonly walBytes: number
}

/** Run a statement, and count. */
export async function counted(session: pg.Client, text: string, values: unknown[] = []): Promise<Counted> {
  const { rows } = await session.query(`explain (analyze, buffers, wal, format json) ${text}`, values)
  const { Plan } = rows[0]['QUERY PLAN'][0]
  return {
    blocks: Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'],
    walBytes: Plan['WAL FPI'] > 0 ? Number.NaN : Plan['WAL Bytes'],
  }
}

const WARM = 2
const ENOUGH = 3
const MOST = 60

/**
 * Repeat a round of several statements until each is known three times, and answer the middle of each. Checkpoints come
 * when they come; the first rounds fill caches.
 */
export async function settled<Part extends string>(
  round: () => Promise<Readonly<Record<Part, Counted>>>,
): Promise<Record<Part, Counted>> {
  const all = new Map<Part, Counted[]>()
  for (let n = 0; n < MOST; n++) {
    const parts = Object.entries(await round()) as [Part, Counted][]
    if (n < WARM) continue
    for (const [part, figures] of parts) {
      const known = all.get(part) ?? []
      if (Number.isFinite(figures.walBytes)) known.push(figures)
      all.set(part, known)
    }
    if ([...all.values()].every(({ length }) => length >= ENOUGH)) break
  }
  const middle = (figures: readonly number[]): number =>
    figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? Number.NaN
  const of = (known: readonly Counted[]): Counted => ({
    blocks: middle(known.map(({ blocks }) => blocks)),
    walBytes: middle(known.map(({ walBytes }) => walBytes)),
  })
  return Object.fromEntries([...all].map(([part, known]) => [part, of(known)])) as Record<Part, Counted>
}
