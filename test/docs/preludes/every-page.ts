// What every page takes for granted: where the database is. The rest is for blocks that readers do not see.

import { setTimeout as sleep } from 'node:timers/promises'

export const connectionString = process.env.DATABASE_URL!

/** Wait until something is true, at most a minute. */
export async function until(condition: () => unknown): Promise<void> {
  const end = performance.now() + 60_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`waited in vain until ${condition}`)
    await sleep(10)
  }
}
