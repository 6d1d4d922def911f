// The connection of a handler's transaction: who may end it, what ends it at the server, when it is waited for.

import { defineJob, fixed, handle, handleInTransaction, permanent, snooze } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('session')
  await rig.db.sql('create table business (job_id bigint, note text)')
})
beforeEach(() => rig.db.sql('truncate business'))
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<string, string>('write', { retry: { backoff: fixed('1h') } })
const other = defineJob('other')
const sleeping = `select count(*)::integer from pg_stat_activity
  where datname = current_database() and query like 'select pg_sleep(60)%' and state = 'active'`
const written = () => rig.db.value<number>('select count(*)::integer from business')
type Context = Parameters<Parameters<typeof handleInTransaction<typeof job>>[1]>[0]
const write = ({ tx, job }: Context) => tx.query('insert into business (job_id) values ($1)', [job.id])

test('a throw beside a statement that still runs ends it, and holds up the outcome of no other job', async () => {
  const handler = handleInTransaction(job, async ({ tx }) => {
    tx.query('select pg_sleep(60)').catch(() => {})
    await until('it sleeps', () => rig.db.value(sleeping))
    throw new Error('changed my mind')
  })
  await rig.start({ handlers: [handler, handle(other, () => {})] })
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'retryable')
  expect(row.attempts).toMatchObject([{ outcome: 'failed', error: { message: 'changed my mind' } }])
  await until('it sleeps no more', async () => (await rig.db.value(sleeping)) === 0)
  await rig.becomes((await rig.rowlock.enqueue(other, null)).id, 'done')
})

test('what a handler throws says nothing of its connection, whatever its words', async () => {
  const pids = new Set<number>()
  const handler = handleInTransaction(job, async ({ tx, input }) => {
    const [row] = (await tx.query('select pg_backend_pid() as pid')).rows
    pids.add(row.pid)
    const error = Object.assign(new Error('request timeout: socket terminated'), { code: 'ECONNRESET' })
    throw input === 'permanent' ? permanent(error) : error
  })
  // The reaper sweeps every 100 ms.
  await rig.start({ handlers: [handler], queues: { default: { concurrency: 1 } } })
  const all = await rig.rowlock.enqueueMany(
    Array.from({ length: 300 }, (_, n) => job.with(n % 2 ? 'permanent' : 'plain')),
  )
  for (const [n, { id }] of all.entries()) {
    const { attempts } = await rig.becomes(id, n % 2 ? 'failed' : 'retryable')
    expect(attempts).toMatchObject([{ outcome: 'failed', cause: 'ECONNRESET' }])
  }
  expect(pids.size).toBe(1)
})

test('an error of a statement is no end of its session, whatever its code: 08006 of a foreign table', async () => {
  const pids = new Set<number>()
  const handler = handleInTransaction(job, async ({ tx }) => {
    pids.add((await tx.query('select pg_backend_pid() as pid')).rows[0].pid)
    await tx.query(`do $$ begin raise 'the other server is gone' using errcode = '08006'; end $$`)
    return ''
  })
  await rig.start({ handlers: [handler], queues: { default: { concurrency: 1 } } }, rig.db.direct)
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 10 }, () => job.with('')))
  for (const { id } of all) {
    const { attempts } = await rig.becomes(id, 'retryable')
    expect(attempts).toMatchObject([{ outcome: 'failed', cause: '08006' }])
  }
  expect(pids.size).toBe(1)
})

test.each([
  'commit',
  'rollback',
  ' -- done\n /* all /* of */ it */ ; COMMIT and chain',
  'begin',
  'start transaction',
  'end',
  'abort',
  'rollback work',
  `prepare transaction 'x'`,
])('a handler cannot say %j: it is told that its worker commits, and fails', async (text) => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    await context.tx.query(text)
    return ''
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect(await rig.becomes(id, 'retryable')).toMatchObject({
    cause: 'INVALID_OPTION',
    attempts: [{ error: { message: expect.stringMatching(/the worker commits/) } }],
  })
  expect(await written()).toBe(0)
})

test('savepoints, and statements that begin alike, are the handler’s own', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await context.tx.query('savepoint s')
    await write(context)
    await context.tx.query('rollback to s')
    await context.tx.query('savepoint s')
    await write(context)
    await context.tx.query('/* back */ rollback work to savepoint s')
    await context.tx.query('release s')
    await context.tx.query('prepare ending as select 1')
    await context.tx.query('deallocate ending')
    return 'fine'
  })
  await rig.start({ handlers: [handler] })
  await rig.becomes((await rig.rowlock.enqueue(job, '')).id, 'done')
  expect(await written()).toBe(0)
})

test.each([
  ['a completion', 'done'],
  ['a snooze', snooze('1h')],
])('a transaction that the handler ended by a way around that commits no %s', async (_, answer) => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    await context.tx.query('select 1; rollback')
    return answer as never
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'retryable')
  expect(row).toMatchObject({ cause: 'LEASE_LOST', failures: 1 })
  expect(await written()).toBe(0)
})
