// Workers on a pool of the user's own, sessions that the server ends, settings of the role, and loops that fail.

import pg from 'pg'
import { createRowlock, defineJob, fixed, handle, handleInTransaction, type Rowlock } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { random, seedOf } from '../engine/by-hand.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let pool: pg.Pool
let rowlock: Rowlock
beforeAll(async () => {
  rig = await makeRig('pool')
  const { hostname, port, username, password, pathname } = new URL(rig.db.url)
  // By parts: the pool hides the password from whoever copies its options.
  pool = new pg.Pool({
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password) || 'none',
    database: pathname.slice(1),
    max: 2,
    application_name: 'ours',
  })
  rowlock = createRowlock({ pool })
})
afterEach(() => rig.rest())
afterAll(async () => {
  await rowlock.close()
  await pool.end()
  await rig.drop()
})

const job = defineJob<number>('job', { retry: { backoff: fixed(0) } })
const write = defineJob<number>('write', { retry: { backoff: fixed(0) } })
const quick = { poll: 50, maintenance: 100, abortGrace: 200 } as const

test('a worker makes connections of its own, so that it beats while all of the pool are busy', async () => {
  const worker = rowlock.worker({
    ...quick,
    handlers: [handle(job, () => {})],
    heartbeat: 100,
    logger: rig.logger,
  })
  await worker.start()
  const first = worker.status.workerId
  expect(first).not.toBeNull()
  const busy = await Promise.all([pool.connect(), pool.connect()])
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'done')
  const beatenAt = () => rig.db.value<Date>('select beat_at from rowlock.worker')
  for (let beats = 0; beats < 5; beats++) {
    const before = await beatenAt()
    await until('it has beaten again', async () => (await beatenAt()) > before)
  }
  expect(worker.status.workerId).toBe(first)
  for (const client of busy) client.release()
  await worker.stop()
  expect(pool.totalCount).toBe(2)
})

test('transactions of handlers run in the pool of the user, and give its connections back', async () => {
  const worker = rowlock.worker({
    ...quick,
    handlers: [
      handleInTransaction(write, async ({ tx, input }) => {
        await tx.query('select 1')
        if (input % 3 === 0) throw new Error('no')
      }),
    ],
    logger: rig.logger,
  })
  await worker.start()
  const all = await rig.rowlock.enqueueMany(
    Array.from({ length: 30 }, (_, n) => write.with(n, { retry: { maxAttempts: 1 } })),
  )
  for (const [n, { id }] of all.entries()) await rig.becomes(id, n % 3 === 0 ? 'dead_letter' : 'done')
  await worker.stop()
  expect(pool.waitingCount).toBe(0)
  expect(pool.idleCount).toBe(pool.totalCount)
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('sessions that the server ends at any moment end no process and lose no job', async () => {
  const next = random(seedOf('pool'))
  await rig.db.sql('create table if not exists business (job_id bigint)')
  await rig.db.sql('truncate business')
  const worker = rowlock.worker({
    ...quick,
    listen: true,
    handlers: [
      handle(job, () => new Promise((resolve) => setTimeout(resolve, 5))),
      handleInTransaction(write, async ({ tx, job }) => {
        await tx.query('insert into business values ($1)', [job.id])
        await tx.query('select pg_sleep(0.005)')
      }),
    ],
    logger: rig.logger,
  })
  await worker.start()
  const all = await rig.rowlock.enqueueMany(
    Array.from({ length: 400 }, (_, n) => (n % 2 ? job : write).with(n, { retry: { maxAttempts: 100 } })),
  )
  let isDone = false
  const idle = rig.idle().finally(() => {
    isDone = true
  })
  // So many and no more: on a slow machine they would come faster than any job ends.
  for (let kills = 0; kills < 60 && !isDone; kills++) {
    await rig.db
      .sql(
        `select pg_terminate_backend(pid) from (
         select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
            and (application_name like 'rowlock %' or application_name = 'ours')
          order by md5(pid::text || $1) limit 1) as one`,
        [String(next())],
      )
      .catch(() => {})
    await rig.db.sql('select pg_sleep($1)', [0.05 + next() / 10]).catch(() => {})
  }
  await idle
  for (const { id } of all) expect((await rig.rowlock.job(id))?.state).toBe('done')
  expect(await rig.db.value('select count(*)::integer from business')).toBe(200)
  expect(await rig.db.value('select count(distinct job_id)::integer from business')).toBe(200)
  await until('it listens', () => worker.status.listening)
  expect(worker.status.state).toBe('running')
  await worker.stop()
})

test('a role with short timeouts and a strict isolation is worked for all the same', async () => {
  // Of the worker's role alone: the test's own sessions are not to be ended while it looks away.
  const role = `strict_${process.pid}`
  const url = Object.assign(new URL(rig.db.url), { username: role, password: 'strict' })
  const settings = {
    default_transaction_isolation: `'serializable'`,
    statement_timeout: `'2s'`,
    lock_timeout: `'500ms'`,
    idle_in_transaction_session_timeout: `'300ms'`,
    idle_session_timeout: `'300ms'`,
    search_path: `''`,
    timezone: `'Asia/Kathmandu'`,
    datestyle: `'German'`,
    standard_conforming_strings: 'off',
    bytea_output: 'escape',
  }
  await rig.db.sql(`create role ${role} login superuser password 'strict'`)
  for (const [key, value] of Object.entries(settings)) {
    await rig.db.sql(`alter role ${role} set ${key} = ${value}`)
  }
  try {
    const seen: Date[] = []
    const worker = await rig.start(
      {
        listen: true,
        handlers: [
          handle(job, ({ job }) => void seen.push(job.enqueuedAt)),
          handleInTransaction(write, async ({ tx }) => {
            // Longer idle than the role allows: the transaction is set to the job's own timeout.
            await new Promise((resolve) => setTimeout(resolve, 600))
            await tx.query('select 1')
          }),
        ],
      },
      url.href,
    )
    const [one, two] = await rig.rowlock.enqueueMany([job.with(1), write.with(1)])
    await rig.becomes(one!.id, 'done')
    expect(await rig.becomes(two!.id, 'done')).toMatchObject({ attempt: 1 })
    expect(Math.abs(seen[0]!.getTime() - Date.now())).toBeLessThan(60_000)
    await until('it listens', () => worker.status.listening)
    await worker.stop()
  } finally {
    await rig.rest()
    await rig.db.sql(`drop role ${role}`)
  }
})

describe('a loop that fails comes back by itself, and the others go on', () => {
  test.each([
    'heartbeat(uuid, jsonb, jsonb)',
    'claim(uuid, jsonb, timestamptz)',
    'finish(jsonb)',
    'reap(integer)',
  ])('%s', async (signature) => {
    const name = signature.slice(0, signature.indexOf('('))
    const rest = signature.slice(signature.indexOf('('))
    const worker = await rig.start({ handlers: [handle(job, () => {})], lease: 1_000 })
    await rig.db.sql(`alter function rowlock.${signature} rename to away`)
    const { id } = await rig.rowlock.enqueue(job, 1)
    await until('it has said so', () => rig.lines.some(({ level }) => level === 'warn'))
    await rig.db.sql(`alter function rowlock.away${rest} rename to ${name}`)
    await rig.becomes(id, 'done')
    expect(worker.status.state).toBe('running')
    await worker.stop()
  })
})

test('a listener of an event that throws stops nothing', async () => {
  const worker = rig.worker({ handlers: [handle(job, () => {})], lease: 1_000, listen: true })
  for (const name of [
    'leased',
    'lease_lost',
    'listening',
    'reaped',
    'stopped',
    'outcome_lost',
    'stuck',
  ] as const) {
    worker.on(name, () => {
      throw new Error(`the listener of ${name}`)
    })
  }
  await worker.start()
  await until('it listens', () => worker.status.listening)
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'done')
  const before = worker.status.workerId
  await rig.db.sql(`update rowlock.worker set expires_at = now() - interval '1 s'`)
  await until('it is back under another name', () => {
    const { workerId } = worker.status
    return workerId !== null && workerId !== before
  })
  const next = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(next.id, 'done')
  await worker.stop()
  expect(worker.status.state).toBe('stopped')
})
