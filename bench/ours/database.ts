// A database with Rowlock in it, and rows put into it in bulk: what the tables hold, without the cost of an enqueue.

import type pg from 'pg'
import { createRowlock } from '../../src/index.ts'
import type { BenchServer } from '../kit/server.ts'

const TEMPLATE = 'rowlock_migrated'
const migrated = new WeakSet<BenchServer>()

/** A fresh database with Rowlock in it: copied from one that was migrated once. Answers its URL. */
export async function rowlockOn(server: BenchServer, name: string): Promise<string> {
  if (!migrated.has(server)) {
    const url = await server.database(TEMPLATE)
    const rowlock = createRowlock({ connectionString: url })
    await rowlock.migrate()
    await rowlock.close()
    migrated.add(server)
  }
  return server.database(name, TEMPLATE)
}

const WAITING: Record<string, string> = {
  id: `nextval('rowlock.job_id')`,
  available_at: `clock_timestamp() - interval '1 s'`,
  enqueued_at: 'clock_timestamp()',
  queue: `'default'`,
  kind: `'k'`,
  input: `'{"to": "somebody@example.com", "template": "welcome"}'`,
}

/** Rows for `waiting`; `columns` are SQL expressions, in which `n` counts from 1. */
export async function fillWaiting(
  client: pg.Client,
  count: number,
  columns: Record<string, string> = {},
): Promise<void> {
  const all = { ...WAITING, ...columns }
  await client.query(
    `insert into rowlock.waiting (${Object.keys(all).join(', ')})
     select ${Object.values(all).join(', ')} from generate_series(1, $1::integer) as n`,
    [count],
  )
}

/** Ended jobs, spread evenly over the last days of the class of a week. */
export async function fillFinished(client: pg.Client, count: number): Promise<void> {
  await client.query(`select rowlock.make_days(clock_timestamp() - interval '6 days', 7)`)
  await client.query(
    `insert into rowlock.finished (id, finished_at, claimed_at, available_at, enqueued_at, worker_id, attempt,
            priority, failures, retention_days, state, queue, kind, input)
     select nextval('rowlock.job_id'), t.at, t.at, t.at, t.at, gen_random_uuid(), 1,
            0, 0, 7, 'done', 'default', 'k', '{"to": "somebody@example.com", "template": "welcome"}'
       from generate_series(1, $1::integer) as n
      cross join lateral (
             select clock_timestamp() - (n % 7) * interval '20 hours' - n * interval '1 ms' / 1000 as at) as t`,
    [count],
  )
}
