// The end of a run: everything that waits or runs ends within a bound, and nothing is left open.

import type { Rest } from './history.ts'
import type { Stage } from './stage.ts'

const LOOK_EVERY_MS = 50
/** Beyond the bound a little longer: late is another fault than never. */
const GRACE_MS = 20_000

/** Wait until nothing waits or runs. `unfinished`: jobs that had not ended at the bound. */
export async function untilDrained(
  { sql }: Pick<Stage, 'sql'>,
  boundMs: number,
): Promise<{ drainedMs: number; unfinished: number }> {
  const began = performance.now()
  let unfinished: number | undefined
  for (;;) {
    const [row] = await sql<{ live: number }>(
      `select ((select count(*) from rowlock.waiting) + (select count(*) from rowlock.running))::integer as live`,
    )
    const passed = performance.now() - began
    const live = row!.live
    if (passed > boundMs) unfinished ??= live
    if (live === 0 || passed > boundMs + GRACE_MS) {
      return { drainedMs: Math.round(passed), unfinished: unfinished ?? 0 }
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

/** What the next maintenance of a living worker would have tidied. */
export async function settle({ sql }: Pick<Stage, 'sql'>): Promise<void> {
  await sql('select rowlock.reap()')
  await sql('select rowlock.sweep()')
}

/** What is left when every worker and producer has gone. Their sessions have a moment to be gone too. */
export async function readRest({ sql }: Pick<Stage, 'sql'>): Promise<Omit<Rest, 'unfinished'>> {
  const end = performance.now() + 5_000
  for (;;) {
    const [row] = await sql<Omit<Rest, 'unfinished'>>(
      `select (select count(*) from pg_stat_activity where datname = current_database()
                and application_name like any (array['rowlock%', 'producer']))::integer as sessions,
              (select count(*) from pg_stat_activity where datname = current_database()
                and state like 'idle in transaction%')::integer as "idleInTransaction",
              (select count(*) from pg_locks where locktype = 'advisory' and database =
                (select oid from pg_database where datname = current_database()))::integer as "advisoryLocks",
              (select count(*) from rowlock.worker)::integer as workers,
              (select count(*) from rowlock.cancel_request)::integer as "cancelRequests",
              (select deadlocks from pg_stat_database where datname = current_database())::integer as deadlocks`,
    )
    const isClean = row!.sessions + row!.idleInTransaction + row!.advisoryLocks === 0
    if (isClean || performance.now() > end) return row!
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}
