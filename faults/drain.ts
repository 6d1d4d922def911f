// The end of a run: everything that waits or runs ends within a bound, and nothing is left open.

import type { Rest } from './history.ts'
import type { Stage } from './stage.ts'

const LOOK_EVERY_MS = 50
/** Beyond the bound a little longer: late is another fault than never. */
const GRACE_MS = 20_000
const TELL_EVERY_MS = 1_000
/** What waits and what runs, by whom. */
export const WHAT_IS_LEFT = `
  select 'waiting ' || queue as what, count(*)::integer as jobs,
         (count(*) filter (where available_at <= now()))::integer as due,
         (count(*) filter (where losses >= 2))::integer as suspects
    from rowlock.waiting group by queue
   union all
  select 'running of ' || coalesce((w.facts ->> 'pid'), 'nobody')
           || case when w.expires_at > now() then '' else ', its lease over' end,
         count(*)::integer, count(r.started_at)::integer, (count(*) filter (where r.losses >= 2))::integer
    from rowlock.running r left join rowlock.worker w on w.id = r.worker_id group by 1
   order by 1`

/**
 * Wait until nothing waits or runs. `unfinished`: jobs that had not ended at the bound. What holds it up is logged each
 * second.
 */
export async function untilDrained(
  { sql }: Pick<Stage, 'sql'>,
  boundMs: number,
  log: (line: string) => void = () => {},
): Promise<{ drainedMs: number; unfinished: number }> {
  const began = performance.now()
  let toldMs = Number.NEGATIVE_INFINITY
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
    if (passed > toldMs + TELL_EVERY_MS) {
      toldMs = passed
      log(`# after ${Math.round(passed)} ms: ${JSON.stringify(await sql(WHAT_IS_LEFT))}`)
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
export async function readRest(
  { sql }: Pick<Stage, 'sql'>,
  momentMs = 5_000,
): Promise<Omit<Rest, 'unfinished'>> {
  const end = performance.now() + momentMs
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
