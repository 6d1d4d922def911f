// What stands between the end of a handler's transaction and its outcome: its connection goes, comes late, or has
// become another's. Without a worker around it, so that each moment can be stood in.

import pg from 'pg'
import { defineJob, handleInTransaction } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ClaimedJob, claim } from '../../src/engine/claim.ts'
import { Database } from '../../src/engine/database.ts'
import type { PooledClient } from '../../src/engine/seam.ts'
import type { HandlerContext, TransactionContext } from '../../src/worker/handler.ts'
import { Run } from '../../src/worker/run.ts'
import { outcomeOf } from '../../src/worker/runner.ts'
import type { RunnerOptions } from '../../src/worker/runner-options.ts'
import { Session } from '../../src/worker/session.ts'
import { runInTransaction } from '../../src/worker/transaction.ts'
import { enqueue, type Hand, type Row, register, untilBlocked } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

const TIMEOUT_MS = 60_000
const logger = { debug() {}, info() {}, warn() {}, error() {} }

let db: TestRowlock
let hand: Hand
let pool: pg.Pool
let transactions: Database
beforeAll(async () => {
  db = await rowlockDatabase('session_end')
})
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.attempt, rowlock.worker')
  hand = await register(db)
  pool = new pg.Pool({ connectionString: db.direct, max: 1 })
  pool.on('error', () => {})
  transactions = new Database({ pool })
})
// A connection that is held for ever ends with the database.
afterEach(() => void pool.end())
afterAll(() => db.drop())

const job = defineJob('k')
const reap = (): Promise<Row[]> => db.value('select rowlock.reap()')
const isAlive = (pid: number) =>
  db.value('select exists (select from pg_stat_activity where pid = $1)', [pid])
const end = async (pid: number) => {
  await db.sql('select pg_terminate_backend($1)', [pid])
  await until('the session is gone', async () => !(await isAlive(pid)))
}
const pidOf = async (tx: TransactionContext['tx']) =>
  (await tx.query('select pg_backend_pid() as pid')).rows[0].pid as number

/** One job that this worker holds, about to run this handler. */
async function running(
  work: (context: TransactionContext) => Promise<unknown>,
  before: () => Promise<unknown> = async () => {},
) {
  await enqueue(db)
  const wants = [{ queue: 'default', limit: 1, kinds: ['k'] }]
  const [claimed] = (await claim(db.database, hand.id, wants, null, TIMEOUT_MS)).jobs
  await before()
  const handler = handleInTransaction(job, work as never)
  const run = new Run(claimed as ClaimedJob, handler, TIMEOUT_MS)
  const options: RunnerOptions = {
    database: db.database,
    transactions,
    timeoutMs: TIMEOUT_MS,
    middleware: [],
    logger,
    installation: () => 'test',
    onCommitted: () => {},
  }
  const context = { input: {} } as HandlerContext
  return { run, ended: runInTransaction(run, context, options, (value) => outcomeOf(run, value, logger)) }
}

test('a connection that its pool ends between the rollback and the outcome is no session that died', async () => {
  let pid = 0
  const { ended } = await running(async ({ tx }) => {
    pid = await pidOf(tx)
    throw new Error('of its own')
  })
  await expect(ended).rejects.toThrow('of its own')
  await end(pid)
  expect(await reap()).toEqual([])
})

test('a session that the server ended leaves its mark: the reaper goes by it, though the lease lives', async () => {
  let pid = 0
  const { run, ended } = await running(async ({ tx }) => {
    pid = await pidOf(tx)
    await tx.query('select pg_terminate_backend(pg_backend_pid())')
  })
  await expect(ended).rejects.toMatchObject({ code: '57P01' })
  await until('the session is gone', async () => !(await isAlive(pid)))
  expect(await reap()).toMatchObject([{ id: run.job.id, to: 'retryable' }])
})

test('a session that comes after the abort goes back to its pool', async () => {
  let calls = 0
  const wall = await db.session()
  // The mark of the session is what waits for it; the lock on the row does not.
  const { run, ended } = await running(
    async () => void calls++,
    () => wall.query('begin; lock table rowlock.running in share mode'),
  )
  await untilBlocked(db)
  run.abort('cancelled')
  expect(await ended).toMatchObject({ verb: 'hand_back', id: run.job.id })
  expect(pool.idleCount).toBe(0)
  await wall.query('commit')
  await until('no connection is held', () => pool.totalCount === pool.idleCount)
  expect(await pool.query('select 1 as one')).toMatchObject({ rows: [{ one: 1 }] })
  expect(calls).toBe(0)
})

/** A session whose server's process outlives it, as behind a pooler. */
async function pooled() {
  const server = await db.session()
  const client: PooledClient = { query: (text, values) => server.query(text, values), release() {} }
  const own = new Database({ pool: { connect: async () => client, end: async () => {} } })
  const session = await Session.open(own, db.database, TIMEOUT_MS)
  await session.begin(TIMEOUT_MS)
  return { session, server, pid: session.pid! }
}

test('a session that is cut is ended at the server, not what its process serves by then', async () => {
  const [one, other] = [await pooled(), await pooled()]
  await other.server.query('rollback')
  await other.server.query('begin')
  for (const { session } of [one, other]) session.cut()
  // At once: the handler may not listen.
  await until('the one is gone', async () => !(await isAlive(one.pid)))
  for (const { session } of [one, other]) await session.rollback()
  expect((await other.server.query('select pg_backend_pid() as pid')).rows).toEqual([{ pid: other.pid }])
})
