// From the tables of the first release to these, with five million finished jobs in them: nobody who enqueues, claims
// or finishes meanwhile waits for long. ROWLOCK_LONG=1 (`./check --long`).

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import { MIGRATIONS } from '../../src/engine/sql.generated.ts'
import { codeOf, type Ground, ground, life } from '../support/ground.ts'
import { IS_LONG } from '../support/long.ts'
import { until } from '../support/until.ts'

const FINISHED = Number(process.env.ROWLOCK_LONG_FINISHED ?? 5_000_000)
const DAYS = 5
const STEP = 250_000
const LIMIT_MS = 1_000

describe.runIf(IS_LONG)('an upgrade of five million finished jobs', { timeout: 1_800_000 }, () => {
  let at: Ground
  const clients: pg.Client[] = []
  const connect = async () => {
    const client = new pg.Client({ connectionString: at.direct })
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    return client
  }

  beforeAll(async () => {
    at = await ground('long upgrade')
    await migrate(at.database(), { migrations: MIGRATIONS.slice(0, 1), routines: [] })
    // The day of now as well: that is where workers finish.
    await at.sql(`do $$ begin
      for n in -${DAYS - 1}..2 loop
        execute format(
          'create table rowlock.finished_7_%s partition of rowlock.finished for values from (7, %L) to (7, %L)',
          to_char(current_date + n, 'YYYYMMDD'), (current_date + n)::text || 'Z', (current_date + n + 1)::text || 'Z');
      end loop; end $$`)
    for (let from = 1; from <= FINISHED; from += STEP) {
      await at.sql(
        `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
             retention_days, state, queue, kind, dedupe_key, idempotency_key)
           select n, at, at, at, 1, 0, 0, 7, case when n % 50 = 0 then 'failed' else 'done' end, 'default', 'k',
                  case when n % 10 = 0 then 'key ' || n end, case when n % 10 = 1 then 'key ' || n end
             from (select n, (current_date - (n % ${DAYS})::integer) at time zone 'UTC' as at
                     from generate_series($1::bigint, $2::bigint) n) as g`,
        [from, from + STEP - 1],
      )
    }
    await at.sql(`insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, input)
      select ${FINISHED} + n, now(), now(), 'default', 'k', '{}' from generate_series(1, 200000) n`)
    await at.sql(`select setval('rowlock.job_id', ${FINISHED} + 200000)`)
  }, 1_200_000)
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})))
    await at?.drop()
  }, 300_000)

  test('keeps nobody waiting for a second, and what an interruption leaves is mended', async () => {
    let isOver = false
    const longest = { enqueue: 0, claim: 0, finish: 0 }
    const turns = { enqueue: 0, claim: 0, finish: 0 }
    const timed = async (what: keyof typeof longest, work: () => Promise<unknown>) => {
      const began = performance.now()
      await work()
      longest[what] = Math.max(longest[what], performance.now() - began)
      turns[what]++
    }
    const producer = await connect()
    const enqueue = async () => {
      while (!isOver) {
        await timed('enqueue', () =>
          producer.query(`insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, input)
            select nextval('rowlock.job_id'), now(), now(), 'default', 'k', '{}' from generate_series(1, 5)`),
        )
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    // As the verbs of the first release do it: the queues are read, rows move from table to table.
    const worker = await connect()
    const work = async () => {
      while (!isOver) {
        let ids: string[] = []
        await timed('claim', async () => {
          await worker.query('begin')
          await worker.query('select from rowlock.queue where paused_at is not null')
          const { rows } = await worker.query(`delete from rowlock.waiting where id = any (array(
            select id from rowlock.waiting where queue = 'default' and kind = 'k' and priority = 0
             order by available_at, id limit 5 for update skip locked)) returning id::text`)
          ids = rows.map(({ id }) => id)
          await worker.query('commit')
        })
        await timed('finish', () =>
          worker.query(
            `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
               retention_days, state, queue, kind)
             select id, now(), now(), now(), 1, 0, 0, 7, 'done', 'default', 'k' from unnest($1::bigint[]) as id`,
            [ids],
          ),
        )
      }
    }
    const busy = Promise.all([enqueue(), work()])
    // The process that upgrades dies while it builds; the next one goes on.
    const building = () =>
      at.admin<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and state = 'active'
            and query ilike 'create index concurrently%'`,
      )
    const dying = codeOf(migrate(at.database()))
    const [builder] = await until('an index is being built', async () => {
      const found = await building()
      return found.length > 0 ? found : undefined
    })
    await at.admin('select pg_terminate_backend($1, 5000)', [builder!.pid])
    expect(await dying).toBe('DATABASE_UNAVAILABLE')
    const began = performance.now()
    expect((await migrate(at.database())).applied).toEqual(['0005_history', '0006_session'])
    const seconds = (performance.now() - began) / 1_000
    isOver = true
    await busy
    const told = Object.entries(longest).map(([what, ms]) => `${what} ${Math.round(ms)} ms`)
    console.log(`${FINISHED} finished, built in ${seconds.toFixed(1)} s; longest ${told.join(', ')}`)
    for (const count of Object.values(turns)) expect(count).toBeGreaterThan(20)
    for (const [what, ms] of Object.entries(longest)) expect(ms, what).toBeLessThan(LIMIT_MS)
    expect(
      await at.sql(`select c.relname::text as name from pg_index i join pg_class c on c.oid = i.indexrelid
        where not i.indisvalid and c.relnamespace = 'rowlock'::regnamespace`),
    ).toEqual([])
    await at.sql('delete from rowlock.waiting')
    await life(at.client())
  })
})
