// Everything through PgBouncer in transaction mode with two server connections: no prepared statement, no session lock,
// no setting may live longer than a transaction, and LISTEN is not heard.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  createRowlock,
  defineJob,
  handle,
  handleInTransaction,
  type Rowlock,
  type Worker,
} from '../../src/index.ts'
import { adminUrl, createDatabase, type TestDatabase } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type Bouncer, findBouncer, startBouncer } from './pgbouncer.ts'

const program = findBouncer()
if (program === undefined) console.info('not run: PgBouncer is not installed')

const note = defineJob<any, any>('note')
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const POOL_SIZE = 2

describe.skipIf(program === undefined)('through PgBouncer', () => {
  let bouncer: Bouncer
  let db: TestDatabase
  let url: string
  let rowlock: Rowlock
  let direct: pg.Pool
  const clients: Rowlock[] = []
  const workers: Worker[] = []
  beforeAll(async () => {
    bouncer = await startBouncer(program!, adminUrl(), POOL_SIZE)
    db = await createDatabase('pooler')
    url = through(db.url)
    direct = new pg.Pool({ connectionString: db.url, max: 2, application_name: 'direct' })
    direct.on('error', () => {})
    rowlock = client(url)
    await rowlock.migrate()
    await direct.query('create table business (n integer)')
  })
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop({ grace: 0 })))
    await direct.query('truncate business, rowlock.waiting, rowlock.running, rowlock.dedupe')
  })
  afterAll(async () => {
    await Promise.all(clients.map((each) => each.close()))
    await direct?.end()
    await bouncer?.stop()
    await db?.drop()
  })
  const through = (to: string) => {
    const target = new URL(bouncer.url)
    target.pathname = new URL(to).pathname
    return target.href
  }
  const client = (connectionString: string) => {
    const made = createRowlock({ connectionString })
    clients.push(made)
    return made
  }
  const start = async (options: Partial<Parameters<Rowlock['worker']>[0]>, heard?: boolean[]) => {
    const worker = rowlock.worker({
      handlers: [handle(note, () => {})],
      poll: 50,
      lease: '1m',
      heartbeat: 200,
      logger: silent,
      ...options,
    })
    worker.on('listening', ({ proven }) => heard?.push(proven))
    workers.push(worker)
    await worker.start()
    return worker
  }
  const sql = async (text: string) => (await direct.query(text)).rows
  const waiting = async () => (await sql('select count(*)::integer as n from rowlock.waiting'))[0].n
  const left = async () =>
    (
      await sql(
        'select count(*)::integer as n from (select from rowlock.waiting union all select from rowlock.running) as l',
      )
    )[0].n

  test('eight migrate an empty database at once, round after round', async () => {
    for (let round = 0; round < 3; round++) {
      const empty = await createDatabase('pooler empty')
      const reports = await Promise.all(Array.from({ length: 8 }, () => client(through(empty.url)).migrate()))
      expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1)
      await Promise.all(clients.splice(1).map((each) => each.close()))
      await empty.drop()
    }
    expect(await sql(ADVISORY)).toEqual([])
  })

  test('jobs go in alone, by thousands, and in the caller’s transaction', async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => rowlock.enqueue(note, n, { dedupeKey: `k${n % 10}` })),
    )
    expect(await waiting()).toBe(10)
    expect(await rowlock.enqueueMany(Array.from({ length: 3_000 }, (_, n) => note.with(n)))).toHaveLength(
      3_000,
    )
    const pooled = new pg.Client({ connectionString: url })
    await pooled.connect()
    await pooled.query('begin')
    await pooled.query('insert into business values (1)')
    await rowlock.in(pooled).enqueueMany(Array.from({ length: 1_200 }, (_, n) => note.with(n)))
    await pooled.query('rollback')
    await pooled.query('begin')
    const { id } = await rowlock.in(pooled).enqueue(note, 'kept')
    await pooled.query('commit')
    await pooled.end()
    expect(await waiting()).toBe(3_011)
    expect(await rowlock.job(id)).toMatchObject({ state: 'queued', input: 'kept' })
    expect(await sql('select from business')).toEqual([])
  })

  test('a worker does all of it by polling, and says that it hears nothing', async () => {
    const ran: unknown[] = []
    const lines: string[] = []
    const worker = await start({
      handlers: [handle(note, ({ input }) => void ran.push(input))],
      logger: { ...silent, warn: (_: object, message: string) => void lines.push(message) },
    })
    await rowlock.enqueueMany(Array.from({ length: 300 }, (_, n) => note.with(n)))
    await until('all are done', async () => (await left()) === 0)
    await rowlock.enqueue(note, 'late')
    await until('the late one is done', async () => (await left()) === 0)
    expect(ran).toHaveLength(301)
    expect(new Set(ran).size).toBe(301)
    expect(worker.status.listening).toBe(false)
    await until(
      'nothing was left behind',
      async () => (await sql('select from rowlock.running')).length === 0,
    )
  })

  test('a running job is cancelled within a heartbeat', async () => {
    let isRunning = false
    await start({
      handlers: [
        handle(note, ({ signal }) => {
          isRunning = true
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        }),
      ],
    })
    const { id } = await rowlock.enqueue(note, 1)
    await until('it runs', () => isRunning)
    expect(await rowlock.cancel(id, { reason: 'enough' })).toBe('requested')
    await until('it is cancelled', async () => (await rowlock.job(id))?.state === 'cancelled')
  })

  test('a transactional handler’s writes commit with its job, or not at all', async () => {
    await start({
      queues: { default: { concurrency: 1 } },
      handlers: [
        handleInTransaction(note, async ({ tx, input }) => {
          await tx.query('insert into business values ($1)', [input])
          if (input === 13) throw new Error('undo')
        }),
      ],
    })
    const [good, bad] = await rowlock.enqueueMany([note.with(12), note.with(13)])
    await until('the good one is done', async () => (await rowlock.job(good!.id))?.state === 'done')
    await until(
      'the bad one is to be tried again',
      async () => (await rowlock.job(bad!.id))?.state === 'retryable',
    )
    expect(await sql('select n from business')).toEqual([{ n: 12 }])
  })

  test('with a direct address for LISTEN a worker is woken', async () => {
    const heard: boolean[] = []
    const ran: unknown[] = []
    const worker = await start(
      {
        handlers: [handle(note, ({ input }) => void ran.push(input))],
        poll: '5m',
        pollListening: '5m',
        listenConnectionString: db.url,
      },
      heard,
    )
    await until('it hears', () => heard.includes(true))
    // Whoever sleeps for minutes is woken, or this never ends.
    await until('it sleeps', async () => (await sql('select from rowlock.sleeper')).length > 0)
    await rowlock.enqueue(note, 'woken')
    await until('it was woken', () => ran.length === 1)
    expect(worker.status.listening).toBe(true)
  })

  test('nothing is left to the next client: no lock, no setting, no statement, no open transaction', async () => {
    const worker = await start({})
    await rowlock.enqueueMany(Array.from({ length: 50 }, (_, n) => note.with(n)))
    await until('all are done', async () => (await left()) === 0)
    await worker.stop()
    expect(await sql(ADVISORY)).toEqual([])
    expect(
      await sql(
        `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
      ),
    ).toEqual([])
    const expected = (await sql(SETTINGS))[0]
    // Hold all server connections at once, to look at each.
    const sessions = await Promise.all(
      Array.from({ length: POOL_SIZE }, async () => {
        const session = new pg.Client({ connectionString: url })
        await session.connect()
        await session.query('begin')
        return session
      }),
    )
    const pids = new Set<number>()
    for (const session of sessions) {
      const found = (await session.query(SETTINGS)).rows[0]
      pids.add((await session.query('select pg_backend_pid() as pid')).rows[0].pid)
      expect(found).toEqual(expected)
      await session.query('rollback')
      await session.end()
    }
    expect(pids.size).toBe(POOL_SIZE)
    const servers = (await bouncer.show('servers')).filter(({ database }) => database === db.name)
    expect(servers.length).toBeLessThanOrEqual(POOL_SIZE)
  })
})

const ADVISORY = `
  select objid from pg_locks
   where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`

const SETTINGS = `
  select current_setting('lock_timeout') as lock_timeout, current_setting('statement_timeout') as statement_timeout,
         current_setting('idle_in_transaction_session_timeout') as idle, current_setting('search_path') as search_path,
         current_setting('check_function_bodies') as bodies, current_setting('client_min_messages') as messages,
         (select count(*)::integer from pg_prepared_statements) as statements`
