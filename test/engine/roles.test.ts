// The roles of docs/running-in-production.md, as real roles: what each may do, and what it may not.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dropDueDays } from '../../src/engine/drop-days.ts'
import { grants, RIGHTS, type Role } from '../../src/ground/rights.ts'
import { defineJob, fixed, handle, handleInTransaction, type Rowlock } from '../../src/index.ts'
import { call } from '../support/cli.ts'
import { codeOf, type Ground, ground, note } from '../support/ground.ts'
import { filesOf, read } from '../support/tree.ts'
import { until } from '../support/until.ts'

const ROLES = Object.keys(RIGHTS) as Role[]
const DENIED = '42501'
const written = defineJob<null>('written')

let at: Ground
let owner: Rowlock
const urls = {} as Record<Role, string>
const clients = {} as Record<Role, Rowlock>
const pools: pg.Pool[] = []
const as = {} as Record<Role, (text: string) => Promise<unknown>>
beforeAll(async () => {
  at = await ground('roles')
  owner = at.client()
  await owner.migrate()
  for (const role of ROLES) {
    urls[role] = await at.role(role)
    await at.sql(grants(role, new URL(urls[role]).username))
    clients[role] = at.client({ url: urls[role] })
    const pool = new pg.Pool({ connectionString: urls[role], max: 1 })
    // The database may go while a session still says goodbye.
    pool.on('error', () => {})
    pools.push(pool)
    as[role] = (text) => pool.query(text)
  }
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()))
  await at?.drop()
})

/** The functions that a comment does not call internal, by their files' names. */
const CALLED = filesOf('sql/functions', '.sql')
  .filter((path) => !/\bInternal\b/.test(read(path).split('create or replace')[0]!))
  .map((path) => path.replace(/^.*\/|\.sql$/g, ''))

test('each function that is not internal belongs to a role, in src/ground/rights.ts', () => {
  const granted = new Set<string>(ROLES.flatMap((role) => RIGHTS[role].functions))
  expect(CALLED.filter((name) => !granted.has(name))).toEqual([])
})

test('an operator may call what a viewer may, and more', () => {
  const operator = new Set<string>(RIGHTS.operator.functions)
  expect(RIGHTS.viewer.functions.filter((name) => !operator.has(name))).toEqual([])
  expect(RIGHTS.operator.reads).toEqual(RIGHTS.viewer.reads)
})

test.each(ROLES)('a %s has the rights that the list says, no fewer and no more', async (role) => {
  const name = new URL(urls[role]).username
  const rows = await at.admin(
    `select p.proname as name from pg_proc p
      where p.pronamespace = 'rowlock'::regnamespace and has_function_privilege($1, p.oid, 'execute')`,
    [name],
  )
  expect(rows.map((row) => row.name).sort()).toEqual([...RIGHTS[role].functions].sort())
  const tables = await at.admin(
    `select c.relname as name, has_table_privilege($1, c.oid, 'insert, update, delete, truncate') as writes
       from pg_class c
      where c.relnamespace = 'rowlock'::regnamespace and c.relkind in ('r', 'p', 'v')
        and has_table_privilege($1, c.oid, 'select, insert, update, delete, truncate')`,
    [name],
  )
  expect(tables.map((row) => row.name).sort()).toEqual([...RIGHTS[role].reads].sort())
  expect(tables.filter((row) => row.writes)).toEqual([])
})

describe('a producer', () => {
  test('enqueues, by the client and in SQL, with keys and with large inputs', async () => {
    const { id } = await clients.producer.enqueue(note, 1, { dedupeKey: 'k' })
    expect(await clients.producer.enqueue(note, 1, { dedupeKey: 'k' })).toEqual({ id, created: false })
    expect(await clients.producer.enqueueMany([note.with('x'.repeat(5_000)), note.with(2)])).toHaveLength(2)
    await as.producer(`select rowlock.enqueue('note', '1', '{"delay": "1 hour"}')`)
    await as.producer(`select rowlock.enqueue_many('[{"kind": "note", "input": 1}]')`)
  })

  test('enqueues a file in steps from the command line', async () => {
    const input = '{"kind": "note", "input": 1}\n{"kind": "note", "input": 2}\n'
    const args = ['enqueue', '--file', '-', '--key', 'import 1']
    expect(await call(args, { url: urls.producer, input })).toMatchObject({ code: 0 })
    expect(await call(['enqueue', 'note', '3'], { url: urls.producer })).toMatchObject({ code: 0 })
  })

  test('neither looks, nor cancels, nor claims', async () => {
    const { id } = await clients.producer.enqueue(note, 1)
    expect(await codeOf(clients.producer.job(id))).toBe(DENIED)
    expect(await codeOf(clients.producer.cancel(id))).toBe(DENIED)
    expect(await codeOf(clients.producer.pause('default'))).toBe(DENIED)
    expect(await codeOf(as.producer(`select rowlock.claim(gen_random_uuid(), '[]')`))).toBe(DENIED)
    expect(await codeOf(as.producer('select from rowlock.waiting'))).toBe(DENIED)
  })
})

describe('a worker', () => {
  test('claims, listens, reads large inputs, works in transactions, fails, snoozes, reaps and tidies', async () => {
    await at.sql('create table business (n integer)')
    const name = new URL(urls.worker).username
    await at.sql(`grant insert on business to ${name}`)
    const lines: string[] = []
    const tell = (_: object, message: string) => void lines.push(message)
    const pool = new pg.Pool({ connectionString: urls.worker, max: 4 })
    pool.on('error', () => {})
    pools.push(pool)
    const seen: number[] = []
    const rowlock = at.client({ url: urls.worker })
    const worker = rowlock.worker({
      handlers: [
        handle(note, ({ input, job }) => {
          seen.push(String(input).length)
          if (input === 'broken' && job.attempt === 1) throw new Error('broken')
        }),
        handleInTransaction(
          written,
          async ({ tx }) => void (await tx.query('insert into business values (1)')),
        ),
      ],
      queues: { work: {} },
      maintenance: 100,
      logger: { debug() {}, info() {}, warn: tell, error: tell },
    })
    let hears = false
    worker.on('listening', ({ proven }) => {
      hears ||= proven
    })
    const to = { queue: 'work', retry: { backoff: fixed('0s') } } as const
    // A worker that is lost with a job.
    await at.sql(
      `select rowlock.register('00000000-0000-4000-8000-000000000001', '1 hour', '{"kinds": ["note"]}')`,
    )
    const jobs = await clients.producer.enqueueMany([
      note.with('small', to),
      note.with('x'.repeat(5_000), to),
      note.with('broken', to),
      written.with(null, to),
    ])
    await at.sql(
      `select rowlock.claim('00000000-0000-4000-8000-000000000001',
         '[{"queue": "work", "limit": 1, "kinds": ["note"]}]')`,
    )
    await at.sql('update rowlock.worker set expires_at = now()')
    await worker.start()
    try {
      await until('all are done', async () =>
        (await Promise.all(jobs.map(({ id }) => owner.job(id)))).every((job) => job?.state === 'done'),
      )
      await until('it hears', () => hears)
    } finally {
      await worker.stop()
    }
    expect(seen).toContain(5_000)
    const expected = [
      'jobs of a lost worker were given back',
      'jobs wait and no living worker handles their kind',
      // For a moment, on a busy machine; that they are heard was waited for.
      'notices are not heard: polling',
    ]
    expect(lines.filter((line) => !expected.includes(line))).toEqual([])
  })

  test('drops the days that are due, with their large inputs, and no others, though it owns no table', async () => {
    const old = 'clock_timestamp() - interval'
    await at.sql(`select rowlock.make_days(${old} '20 days', 1), rowlock.make_days(${old} '3 days', 1)`)
    await at.sql(
      `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
         retention_days, state, queue, kind)
       select n, case when n <= 901500 then ${old} '20 days' else ${old} '3 days' end, now(), now(), 1, 0, 0, 7,
              'done', 'default', 'k'
         from generate_series(900001, 902000) n`,
    )
    await at.sql(`insert into rowlock.payload select n, '1' from generate_series(900001, 902000) n`)
    const database = at.database({ url: urls.worker })
    const due = (await at.sql('select day from rowlock.days_due()')).map((row) => row.day)
    expect(due).toHaveLength(2)
    expect(await dropDueDays(database, false)).toEqual(due)
    expect(await dropDueDays(database, false)).toEqual([])
    expect(await at.sql('select count(*)::integer as n from rowlock.payload where job_id > 900000')).toEqual([
      { n: 500 },
    ])
    const [young] = await at.sql(
      `select relname as day from pg_class where relname = 'finished_7_' || to_char(${old} '3 days', 'YYYYMMDD')`,
    )
    await as.worker(`select rowlock.drop_day('${young.day}')`)
    await as.worker(`select rowlock.drop_day('waiting')`)
    expect(await at.sql('select count(*)::integer as n from rowlock.finished where id > 900000')).toEqual([
      { n: 500 },
    ])
    expect(await codeOf(as.worker(`drop table rowlock."${young.day}"`))).toBe(DENIED)
  })

  test('neither enqueues, nor looks at what waits, nor operates', async () => {
    expect(await codeOf(clients.worker.enqueue(note, 1))).toBe(DENIED)
    expect(await codeOf(clients.worker.pause('default'))).toBe(DENIED)
    expect(await codeOf(as.worker('select from rowlock.waiting'))).toBe(DENIED)
    expect(await codeOf(as.worker('delete from rowlock.running'))).toBe(DENIED)
  })
})

describe('a viewer', () => {
  test('looks at a job in every phase, and at who did what', async () => {
    const { id } = await owner.enqueue(note, { n: 1 })
    expect(await clients.viewer.job(id)).toMatchObject({ state: 'queued', input: { n: 1 } })
    await as.viewer('select * from rowlock.audit')
    await as.viewer('select * from rowlock.unhandled()')
  })

  test('asks everything that the client and the command line ask', async () => {
    const rowlock = clients.viewer
    const { id } = await owner.enqueue(note, { n: 2 }, { tenantId: 'looked at' })
    const filter = { tenantId: 'looked at' }
    expect((await rowlock.jobs(filter)).jobs).toHaveLength(1)
    for await (const job of rowlock.eachJob(filter)) expect(job.id).toBe(id)
    expect(await rowlock.countJobs(filter)).toEqual({ count: 1, about: false })
    expect((await rowlock.why(id))[0]?.reason).toBeTruthy()
    expect((await rowlock.story(id))[0]?.event).toBe('enqueued')
    expect((await rowlock.queues()).map(({ queue }) => queue)).toContain('default')
    expect(await rowlock.queue('default')).toMatchObject({ queue: 'default' })
    expect(await rowlock.workers()).toBeInstanceOf(Array)
    expect(await rowlock.deadLetters()).toEqual([])
    expect((await rowlock.changes()).changes).toBeInstanceOf(Array)
    expect(await rowlock.bulks()).toEqual([])
    await as.viewer('select * from rowlock.jobs()')
    for (const args of [
      ['jobs'],
      ['job', id],
      ['why', id],
      ['queues'],
      ['queue', 'default'],
      ['workers'],
      ['dead-letters'],
      ['changes'],
      ['bulk'],
    ]) {
      expect({ args, ...(await call(args, { url: urls.viewer })) }).toMatchObject({ args, code: 0 })
    }
  })

  test('changes nothing', async () => {
    const { id } = await owner.enqueue(note, 1)
    const rowlock = clients.viewer
    const changes = [
      rowlock.enqueue(note, 1),
      rowlock.cancel(id),
      rowlock.runNow(id),
      rowlock.prioritize(id, 1),
      rowlock.redrive(id),
      rowlock.discard(id),
      rowlock.retry(id),
      rowlock.purge(id),
      rowlock.cancelMany([id]),
      rowlock.runNowMany([id]),
      rowlock.prioritizeMany([id], 1),
      rowlock.redriveMany([id]),
      rowlock.discardMany([id]),
      rowlock.retryMany([id]),
      rowlock.purgeMany([id]),
      rowlock.bulk('cancel', { all: true }),
      rowlock.pause('default'),
      rowlock.setQueue('default', { retentionDays: 0 }),
      as.viewer('delete from rowlock.audit'),
    ]
    expect(new Set(await Promise.all(changes.map(codeOf)))).toEqual(new Set([DENIED]))
    expect((await owner.job(id))?.state).toBe('queued')
  })
})

describe('an operator', () => {
  test('changes what waits and what ended, and pauses, with its name on record', async () => {
    const rowlock = clients.operator
    const by = { actor: 'ada', reason: 'ticket 4711' }
    const { id } = await owner.enqueue(note, 1, { delay: '1h' })
    await rowlock.prioritize(id, 5, by)
    await rowlock.runNow(id, by)
    expect(await rowlock.cancel(id, by)).toBe('cancelled')
    const copy = await rowlock.retry(id, by)
    expect((await rowlock.job(copy.id))?.retriedFrom).toBe(id)
    expect(await rowlock.pause('default', by)).toBe(true)
    expect(await rowlock.resume('default', by)).toBe(true)
    const rows = await at.sql('select verb from rowlock.audit where job_id = $1 order by id', [id])
    expect(rows.map((row) => row.verb)).toEqual(['prioritize', 'run_now', 'cancel', 'retry'])
  })

  test('changes many, by ids and by filter, and deletes history for good', async () => {
    const rowlock = clients.operator
    const by = { actor: 'ada', reason: 'ticket 4712' }
    const jobs = await owner.enqueueMany(
      [1, 2, 3, 4].map((n) => note.with(n, { tenantId: 'gone', delay: '1h' })),
    )
    const [first, second] = jobs.map(({ id }) => id)
    expect((await rowlock.prioritizeMany([first!], 3, by)).map(({ answer }) => answer)).toEqual([
      'prioritized',
    ])
    expect((await rowlock.runNowMany([first!], by)).map(({ answer }) => answer)).toEqual(['due'])
    expect((await rowlock.cancelMany([first!, second!], by)).map(({ answer }) => answer)).toEqual([
      'cancelled',
      'cancelled',
    ])
    const bulk = await rowlock.bulk('cancel', { tenantId: 'gone' }, by)
    expect(await bulk.run()).toMatchObject({ changed: 2, outcome: 'done' })
    expect((await rowlock.openBulk(bulk.id)).row).toMatchObject({ verb: 'cancel' })
    expect((await (await rowlock.bulk('retry', { tenantId: 'gone' }, by)).stop(by)).outcome).toBe('stopped')
    await rowlock.purge(first!, by)
    expect((await rowlock.purgeMany([second!], by)).map(({ answer }) => answer)).toEqual(['purged'])
    expect(await owner.job(first!)).toBeNull()
    const args = ['retry', '--yes', '--tenant-id', 'gone', '--reason', 'after all']
    expect(await call(args, { url: urls.operator })).toMatchObject({ code: 0 })
  })

  test('neither enqueues, nor claims, nor touches a table or the clock', async () => {
    expect(await codeOf(clients.operator.enqueue(note, 1))).toBe(DENIED)
    expect(await codeOf(as.operator(`select rowlock.claim(gen_random_uuid(), '[]')`))).toBe(DENIED)
    expect(await codeOf(as.operator('delete from rowlock.waiting'))).toBe(DENIED)
    const clock =
      'create or replace function rowlock.now() returns timestamptz language sql as $$ select null $$'
    expect(await codeOf(as.operator(clock))).toBe(DENIED)
  })
})
