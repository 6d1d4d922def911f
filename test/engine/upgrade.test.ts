// From the first release's tables to these, with history in them, while others claim and finish.

import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import { MIGRATIONS } from '../../src/engine/sql.generated.ts'
import { codeOf, type Ground, ground, life } from '../support/ground.ts'
import { until } from '../support/until.ts'

const DAYS = ['20260101', '20260102', '20260103'] as const
const FINISH = `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
    retention_days, state, queue, kind, dedupe_key)
  select n, at, at, at, 1, 0, 0, 7, 'failed', 'default', 'k', 'key ' || n
    from (select n, '2026-01-01T00:00:00Z'::timestamptz + (n % 3) * interval '1 day' as at`

let at: Ground
let other: pg.Client
beforeEach(async () => {
  at = await ground('upgrade')
  await migrate(at.database(), { migrations: MIGRATIONS.slice(0, 1), routines: [] })
  for (const [n, day] of DAYS.entries()) {
    await at.sql(
      `create table rowlock.finished_7_${day} partition of rowlock.finished
         for values from (7, '2026-01-0${n + 1}Z') to (7, '2026-01-0${n + 2}Z')`,
    )
  }
  await at.sql(`${FINISH} from generate_series(1, 300) n) as g`)
  other = await connected()
})
afterEach(async () => {
  await other.end().catch(() => {})
  await at.drop()
})

async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: at.direct })
  client.on('error', () => {})
  await client.connect()
  return client
}
/** What is building an index of a day just now. */
const building = () =>
  at.admin<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and state = 'active'
        and query ilike 'create index concurrently%'`,
  )
/** The indexes of history, with how many days are in each. */
const indexes = () =>
  at.sql(
    `select c.relname::text as name, i.indisvalid as valid,
            (select count(*)::integer from pg_inherits p join pg_index d on d.indexrelid = p.inhrelid and d.indisvalid
              where p.inhparent = c.oid) as days
       from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = 'rowlock.finished'::regclass and c.relname like 'finished\\_%' order by 1`,
  )
const days = () =>
  at
    .sql(`select count(*)::integer as n from pg_inherits where inhparent = 'rowlock.finished'::regclass`)
    .then(([row]) => row.n as number)
async function allIndexed(): Promise<void> {
  const count = await days()
  expect(await indexes()).toEqual(
    expect.arrayContaining(
      ['dedupe_key', 'idempotency_key', 'not_done'].map((name) => ({
        name: `finished_${name}`,
        valid: true,
        days: count,
      })),
    ),
  )
  expect(count).toBeGreaterThan(DAYS.length)
  expect(
    await at.sql(`select c.relname::text as name from pg_index i join pg_class c on c.oid = i.indexrelid
      where not i.indisvalid and c.relnamespace = 'rowlock'::regnamespace`),
  ).toEqual([])
}

describe('the indexes of history', () => {
  test('are built day by day while jobs finish, and days that come later have them', async () => {
    // A build waits for every transaction that has a snapshot.
    await other.query('begin isolation level repeatable read')
    await other.query('select 1')
    const upgrade = migrate(at.database())
    await until('an index of a day is being built', async () => (await building()).length > 0)
    const worker = await connected()
    await worker.query(`set lock_timeout = '100ms'`)
    await worker.query(`${FINISH} from generate_series(301, 330) n) as g`)
    await worker.query('select from rowlock.queue')
    await worker.end()
    expect(await building()).toHaveLength(1)
    await other.query('commit')
    expect((await upgrade).applied).toEqual([
      '0002_operating',
      '0003_identity',
      '0004_concurrency',
      '0005_history',
      '0006_session',
      '0007_limits',
    ])
    await allIndexed()
    expect(await at.client().countJobs({ state: 'failed' })).toMatchObject({ count: 330 })
    await life(at.client())
  })

  test('that were interrupted are mended by the next run', async () => {
    await other.query('begin isolation level repeatable read')
    await other.query('select 1')
    const upgrade = migrate(at.database())
    const died = expect(upgrade).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    await until('an index of a day is being built', async () => (await building()).length > 0)
    const [builder] = await building()
    await at.admin('select pg_terminate_backend($1, 5000)', [builder!.pid])
    await died
    await other.query('commit')
    const left = await at.sql(`select from pg_index i join pg_class c on c.oid = i.indexrelid
      where not i.indisvalid and c.relkind = 'i' and c.relname like 'finished%not_done'`)
    expect(left).toHaveLength(1)
    expect((await migrate(at.database())).applied).toEqual(['0005_history', '0006_session', '0007_limits'])
    await allIndexed()
  })

  test('do without a day that is dropped meanwhile', async () => {
    await other.query('begin isolation level repeatable read')
    await other.query('select 1')
    const upgrade = migrate(at.database())
    await until('an index of a day is being built', async () => (await building()).length > 0)
    const dropping = at.sql(`drop table rowlock.finished_7_${DAYS[2]}`)
    await dropping
    await other.query('commit')
    expect((await upgrade).applied).toHaveLength(6)
    expect((await indexes()).every(({ valid }) => valid)).toBe(true)
  })
})

test('claims go on while the change of queue waits for its lock', async () => {
  // Somebody has claimed in a transaction that is still open.
  await other.query('begin; lock table rowlock.queue in access share mode')
  const lines: string[] = []
  const upgrade = migrate(at.database(), { onProgress: (line) => lines.push(line) })
  const claimer = await connected()
  // It waits behind the upgrade for a tenth of a second; on a busy machine until that has its turn.
  await claimer.query(`set lock_timeout = '30s'`)
  const waits = () =>
    at.admin(`select from pg_locks l join pg_class c on c.oid = l.relation
      where c.oid = 'rowlock.queue'::regclass and not l.granted and l.mode = 'AccessExclusiveLock'`)
  for (let round = 0; round < 3; round++) {
    await until('the upgrade waits for the queues', async () => (await waits()).length > 0)
    expect(await codeOf(claimer.query('select from rowlock.queue'))).toBe('no error')
  }
  await until('it says so', () => lines.includes('waiting for a lock that somebody else holds'))
  await claimer.end()
  await other.query('commit')
  expect((await upgrade).applied).toHaveLength(6)
})
