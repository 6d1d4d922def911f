// What one worker does for all: it reaps, sweeps, makes and drops days, and reports kinds that nobody handles.

import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { dropDueDays } from '../../src/engine/drop-days.ts'
import { Maintenance } from '../../src/worker/maintenance.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let database: Database
beforeAll(async () => {
  rig = await makeRig('maintenance')
  database = new Database({ connectionString: rig.db.url }).lane(3, 'maintenance')
})
afterEach(() => rig.rest())
afterAll(async () => {
  await database.closeLane()
  await rig.drop()
})

const job = defineJob<unknown>('job')
const days = async (like: string) =>
  (
    await rig.db.sql(
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'rowlock' and c.relkind = 'r' and c.relname ~ $1 order by 1`,
      [like],
    )
  ).map(({ name }) => name)

function maintenance(more: object = {}) {
  const errors: unknown[] = []
  const loop = new Maintenance({
    database,
    everyMs: 100,
    timeoutMs: 10_000,
    logger: rig.logger,
    isPooled: () => false,
    onReaped: () => {},
    onError: (error) => void errors.push(error),
    ...more,
  })
  return { loop, errors }
}

/** A day of history long gone, with one finished job whose input lies apart. */
async function oldDay(date: string) {
  await rig.db.sql('select rowlock.make_days($1::timestamptz, 1)', [`${date}T12:00:00Z`])
  const [{ id }] = await rig.db.sql(`select nextval('rowlock.job_id')::text as id`)
  await rig.db.sql(
    `insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
       retention_days, state, queue, kind)
     values ($1, $2::timestamptz, $2::timestamptz, $2::timestamptz, 1, 0, 0, 7, 'done', 'default', 'old')`,
    [id, `${date}T12:00:00Z`],
  )
  await rig.db.sql(`insert into rowlock.payload (job_id, body) values ($1, '"large"')`, [id])
  return id as string
}

describe('days', () => {
  test('that are due are dropped with their payloads, while a transactional completion is open', async () => {
    const id = await oldDay('2026-01-05')
    const kept = await rig.rowlock.enqueue(job, 'x'.repeat(10_000))
    const session = await rig.db.session()
    const worker = await rig.start({ handlers: [handle(job, () => {})] })
    await rig.becomes(kept.id, 'done')
    await session.query('begin')
    await session.query(`insert into rowlock.finished select f.* from rowlock.finished f where f.id = $1`, [
      kept.id,
    ])
    let isDone = false
    const { loop, errors } = maintenance()
    const dropping = loop.runOnce().then(() => {
      isDone = true
    })
    // The others go on, whatever the drop waits for.
    for (let n = 0; n < 5; n++) {
      const { id } = await rig.rowlock.enqueue(job, n)
      await rig.becomes(id, 'done')
    }
    await dropping
    await session.query('rollback')
    await until('the day is gone', async () => {
      await dropDueDays(database, false)
      return (await days('2026010[0-9]$')).length === 0
    })
    expect(isDone).toBe(true)
    expect(errors).toEqual([])
    expect(await rig.rowlock.job(id)).toBeNull()
    expect(await rig.db.sql('select job_id::text as id from rowlock.payload')).toEqual([{ id: kept.id }])
    await worker.stop()
  })

  test('whose drop was interrupted are finished off later', async () => {
    await oldDay('2026-01-06')
    const blocker = await rig.db.session()
    await blocker.query('begin isolation level repeatable read')
    await blocker.query('select count(*) from rowlock.finished')
    const detacher = await rig.db.session()
    const [{ pid }] = (await detacher.query('select pg_backend_pid() as pid')).rows
    const name = (await days('finished_7_20260106'))[0]!
    const detaching = detacher
      .query(`alter table rowlock.finished detach partition rowlock.${name} concurrently`)
      .catch(() => {})
    await until('the detach is pending', () =>
      rig.db.value(`select inhdetachpending from pg_inherits where inhrelid = $1::regclass`, [
        `rowlock.${name}`,
      ]),
    )
    await rig.db.sql('select pg_terminate_backend($1)', [pid])
    await detaching
    const { loop, errors } = maintenance()
    await loop.runOnce()
    await blocker.query('rollback')
    await until('the day is gone', async () => {
      await dropDueDays(database, false)
      return (await days('2026010[0-9]$')).length === 0
    })
    expect(errors).toEqual([])
    // A finished one can still be written and read.
    const { id } = await rig.rowlock.enqueue(job, 1)
    await rig.start({ handlers: [handle(job, () => {})] })
    await rig.becomes(id, 'done')
  })

  test('go the same way behind a pooler', async () => {
    await oldDay('2026-01-07')
    expect(await dropDueDays(database, true)).toHaveLength(2)
    expect(await days('2026010[0-9]$')).toEqual([])
  })

  test('that are missing are made, also by a finish', async () => {
    const today = await rig.db.value(`select to_char(rowlock.now() at time zone 'UTC', 'YYYYMMDD')`)
    const { id } = await rig.rowlock.enqueue(job, 1)
    await rig.db.sql(`drop table rowlock.finished_7_${today}, rowlock.attempt_7_${today}`)
    await rig.start({ handlers: [handle(job, () => {})] })
    await rig.becomes(id, 'done')
    const { loop } = maintenance()
    await loop.runOnce()
    expect((await days('^finished_7_')).length).toBeGreaterThanOrEqual(15)
  })
})

test('a part of maintenance that fails keeps no other from being done', async () => {
  await rig.db.sql('alter function rowlock.sweep(integer) rename to sweep_away')
  await rig.db.sql('alter function rowlock.make_days(timestamptz, integer) rename to make_days_away')
  try {
    await rig.rowlock.enqueue(job, 1)
    const { loop, errors } = maintenance()
    await loop.runOnce()
    expect(errors).toHaveLength(2)
    expect(rig.lines.filter(({ message }) => message.includes('no living worker'))).toHaveLength(1)
  } finally {
    await rig.db.sql('alter function rowlock.sweep_away(integer) rename to sweep')
    await rig.db.sql('alter function rowlock.make_days_away(timestamptz, integer) rename to make_days')
  }
})

test('a kind that waits and that nobody handles is reported once', async () => {
  await rig.rowlock.enqueueMany([job.with(1), job.with(2), defineJob('odd').with(null)])
  await rig.rowlock.enqueue(defineJob('later'), null, { delay: '1h' })
  await rig.rowlock.enqueue(defineJob('elsewhere'), null, { queue: 'elsewhere' })
  const worker = await rig.start({ handlers: [handle(job, () => {})] })
  await rig.becomes((await rig.rowlock.enqueue(job, 3)).id, 'done')
  const reports = () => rig.lines.filter(({ message }) => message.includes('no living worker'))
  await until('it is reported', () => reports().length > 0)
  await until('the other too', () => reports().length > 1)
  expect(
    reports()
      .map(({ fields }) => fields.kind)
      .sort(),
  ).toEqual(['elsewhere', 'odd'])
  const { loop } = maintenance()
  await loop.runOnce()
  await loop.runOnce()
  expect(reports()).toHaveLength(4)
  await worker.stop()
})

test('only the eldest living worker maintains; when it dies the next one takes over', async () => {
  const reapers = async () => {
    // Jobs of a worker that is gone are the bait.
    await rig.db.sql('delete from rowlock.waiting')
    const { id } = await rig.rowlock.enqueue(defineJob('bait'), null, { delay: '1h' })
    await rig.db.sql('update rowlock.waiting set available_at = now() where id = $1', [id])
    const dead = (await rig.db.sql('select gen_random_uuid()::text as id'))[0].id
    await rig.db.sql(`select rowlock.register($1, '1 hour', '{}')`, [dead])
    await rig.db.sql('select rowlock.claim($1, $2)', [
      dead,
      JSON.stringify([{ queue: 'default', limit: 9, kinds: ['bait'] }]),
    ])
    await rig.db.sql('delete from rowlock.worker where id = $1', [dead])
    await until('it is given back', async () => (await rig.rowlock.job(id))?.state !== 'running')
  }
  const counts = new Map<number, number>()
  const workers = []
  for (let n = 0; n < 3; n++) {
    const worker = await rig.start({ handlers: [handle(job, () => {})], heartbeat: 200 })
    worker.on('reaped', ({ jobs }) => counts.set(n, (counts.get(n) ?? 0) + jobs.length))
    workers.push(worker)
  }
  await until('the younger ones know', () =>
    rig.db.value(`select count(*) = 3 and bool_and(beat_at > started_at) from rowlock.worker`),
  )
  // A sweep is seen in the database before its answer is here.
  const told = (jobs: number) =>
    until('who swept was told', () => [...counts.values()].reduce((sum, n) => sum + n, 0) >= jobs)
  for (let n = 0; n < 5; n++) await reapers()
  await told(5)
  expect([...counts]).toEqual([[0, 5]])
  await workers[0]!.stop()
  for (let n = 0; n < 5; n++) await reapers()
  await told(10)
  expect([...counts]).toEqual([
    [0, 5],
    [1, 5],
  ])
})
