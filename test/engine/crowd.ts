// A few hundred jobs in every phase, of many kinds, and what a filter means said once more in TypeScript: an oracle
// that shares nothing with the SQL it judges.

import type { TestRowlock } from '../support/database.ts'
import type { Row } from './by-hand.ts'

export const WORKERS = [
  '00000000-0000-4000-8000-000000000001',
  '00000000-0000-4000-8000-000000000002',
] as const

/** Ids are from `from` on: waiting, running, dead letters and each class of history, mixed by their ids. */
export async function crowd(db: TestRowlock, from = 1): Promise<void> {
  await db.sql(`insert into rowlock.queue (name, retention_days) values ('q1', 1), ('q2', 30), ('q3', 90)
                  on conflict (name) do nothing`)
  await db.sql(`select rowlock.make_days(now() - interval '3 days', 5)`)
  const columns = `enqueued_at, available_at, attempt, priority, failures, queue, kind, tenant_id,
                   dedupe_key, idempotency_key, metadata, retried_from, input`
  const values = `now() - interval '3 days' + n * interval '5 min',
                  now() - interval '3 days' + n * interval '8 min', n % 4, (n % 5) - 2, n % 3, 'q' || n % 4,
                  'k' || n % 3, case when n % 5 > 0 then 't' || n % 5 end, case when n % 7 = 0 then 'd' || n % 21 end,
                  case when n % 6 = 0 then 'i' || n % 18 end,
                  case when n % 4 = 0 then jsonb_build_object('customer', jsonb_build_object('id', n % 8)) end,
                  case when n % 9 = 0 then n % 27 + 1 end, '{}'::jsonb`
  const numbers = (rest: string) => `from generate_series(${from}, ${from} + 599) as n where ${rest}`
  await db.sql(`insert into rowlock.waiting (id, ${columns}, cause)
    select n, ${values}, case when n % 11 = 0 then 'E' || n % 2 end ${numbers('n % 6 = 1')}`)
  await db.sql(`insert into rowlock.dedupe (queue, key, job_id)
    select queue, dedupe_key, max(id) from rowlock.waiting where dedupe_key is not null group by 1, 2
      on conflict do nothing`)
  // One holder a key, as the verbs have it.
  await db.sql(`update rowlock.waiting w set dedupe_key = null
    where dedupe_key is not null and not exists (select from rowlock.dedupe d where d.job_id = w.id)`)
  await db.sql(`insert into rowlock.running (id, ${columns}, claimed_at, claim_id, worker_id, losses)
    select n, ${values}, now(), gen_random_uuid(), '${WORKERS[0]}', 0 ${numbers('n % 30 = 2')}`)
  await db.sql(`insert into rowlock.dead_letter (id, ${columns}, dead_at, worker_id, losses, cause, error)
    select n, ${values}, now() - (600 - (n - ${from})) * interval '7 min', '${WORKERS[1]}', 0, 'E' || n % 3,
           case when n % 12 = 3 then jsonb_build_object('message', 'order ' || n || ' is gone' || chr(10) || 'x') end
           ${numbers('n % 6 = 3')}`)
  await db.sql(`insert into rowlock.finished (id, ${columns}, finished_at, retention_days, state, worker_id, cause)
    select n, ${values}, now() - (600 - (n - ${from})) * interval '7 min', (array[7, 1, 30, 90])[n % 4 + 1],
           (array['done', 'failed', 'done', 'cancelled', 'done'])[n % 5 + 1], '${WORKERS[1]}',
           case when n % 5 in (1, 3) then 'E' || n % 3 end ${numbers('n % 6 in (0, 4, 5)')}`)
  await db.sql(`select setval('rowlock.job_id', ${from} + 1000)`)
}

export async function everyJob(db: { sql: TestRowlock['sql'] }): Promise<Row[]> {
  const rows = await db.sql(
    `select to_jsonb(j) || jsonb_build_object('id', j.id::text, 'retried_from', j.retried_from::text) as job
       from rowlock.job j order by j.id desc`,
  )
  return rows.map(({ job }) => job)
}

const among = (given: unknown, found: unknown) => [given].flat().includes(found)
const errorLine = (error: Row) =>
  error?.message === undefined ? undefined : error.message.split('\n')[0].replace(/\d+/g, '#').slice(0, 200)
const contains = (all: Row, part: Row): boolean =>
  typeof part === 'object' && part !== null
    ? typeof all === 'object' &&
      all !== null &&
      Object.entries(part).every(([key, value]) => contains(all[key], value))
    : all === part

/** Does this row of the view fit? */
export function fits(job: Row, filter: Row, now = Date.now()): boolean {
  const waits = ['queued', 'retryable'].includes(job.state)
  const ahead = Date.parse(job.available_at) > now
  const states = [
    job.state,
    ...(waits && !ahead ? ['due'] : []),
    ...(job.state === 'queued' && ahead ? ['scheduled'] : []),
  ]
  return Object.entries(filter).every(([name, wanted]: [string, Row]) => {
    const span = /^(\w+)_(since|until)$/.exec(name)
    if (span !== null) {
      const at = Date.parse(job[span[1] === 'ended' ? 'finished_at' : `${span[1]}_at`])
      return span[2] === 'since' ? at >= Date.parse(wanted) : at < Date.parse(wanted)
    }
    if (name === 'all') return true
    if (name === 'state') return states.some((state) => among(wanted, state))
    if (name === 'error') return job.state === 'dead_letter' && errorLine(job.error) === wanted
    if (name === 'metadata') return contains(job.metadata, wanted)
    return among(wanted, job[name])
  })
}

const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()
const STATES = [
  'queued',
  'retryable',
  'running',
  'done',
  'failed',
  'cancelled',
  'dead_letter',
  'scheduled',
  'due',
]

/** One filter for each condition, and pairs of those that are served by different paths. */
export const FILTERS: readonly Row[] = [
  {},
  { all: true },
  ...STATES.map((state) => ({ state })),
  { state: ['queued', 'done'] },
  { state: ['failed', 'cancelled', 'dead_letter'] },
  { state: ['scheduled', 'running'] },
  { queue: 'q1' },
  { queue: ['q2', 'q3', 'none'] },
  { queue: 'none' },
  { queue: 'q1', state: 'queued' },
  { queue: 'q1', state: ['due', 'failed'], kind: 'k1' },
  { kind: 'k1' },
  { kind: ['k0', 'k2'], state: 'done' },
  { tenant_id: 't2' },
  { tenant_id: ['t1', 't4'], state: 'retryable' },
  { cause: 'E1' },
  { cause: ['E0', 'E2'], state: 'failed' },
  { dedupe_key: 'd0' },
  { dedupe_key: 'd7', queue: 'q3' },
  { dedupe_key: 'd7', state: 'queued' },
  { dedupe_key: 'd7', state: 'done' },
  { dedupe_key: 'd14', state: ['dead_letter', 'done', 'running'] },
  { idempotency_key: 'i6' },
  { idempotency_key: 'i0', state: ['done', 'failed'] },
  { idempotency_key: 'i12', dedupe_key: 'd0' },
  { error: 'order # is gone' },
  { error: 'order # is gone', queue: 'q3', state: ['dead_letter', 'done'] },
  { metadata: { customer: { id: 4 } } },
  { metadata: {} },
  { worker_id: WORKERS[0] },
  { worker_id: WORKERS[1], state: 'cancelled' },
  { retried_from: '10' },
  { enqueued_since: ago(40) },
  { enqueued_until: ago(40), state: 'done' },
  { enqueued_since: ago(50), enqueued_until: ago(40) },
  { available_since: ago(30) },
  { available_until: ago(30), state: 'queued' },
  { ended_since: ago(20) },
  { ended_until: ago(20) },
  { ended_since: ago(50), ended_until: ago(26), state: ['done', 'dead_letter'] },
  { ended_since: ago(30), enqueued_since: ago(31), kind: 'k0' },
]
