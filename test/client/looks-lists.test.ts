// Lists, counts, dead letters and changes from TypeScript: typed, on the pool and in the caller's transaction, for a
// role that can do nothing but call, in a schema of any name.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineJob, type JobFilter, type Looks, type Rowlock } from '../../src/index.ts'
import { type Ground, ground } from '../support/ground.ts'
import { failure } from './refused.ts'

const SCHEMA = `it's "a" schema`
const send = defineJob<{ n: number }>('send', { queue: 'email' })
let at: Ground
let rowlock: Rowlock
let url: string
let ids: string[]
beforeAll(async () => {
  at = await ground('looks')
  const owner = at.client({ schema: SCHEMA })
  await owner.migrate()
  url = await at.role('app', [
    `set timezone = 'Asia/Kathmandu'`,
    `set datestyle = 'German, DMY'`,
    `set default_transaction_isolation = 'serializable'`,
    'set enable_indexscan = off',
    'set jit_above_cost = 0',
  ])
  const role = new URL(url).username
  await at.sql(`grant usage on schema ${pg.escapeIdentifier(SCHEMA)} to ${role}`)
  await at.sql(`grant execute on all functions in schema ${pg.escapeIdentifier(SCHEMA)} to ${role}`)
  rowlock = at.client({ url, schema: SCHEMA })
  const jobs = Array.from({ length: 25 }, (_, n) =>
    send.with({ n }, { tenantId: `t${n % 5}`, metadata: { n }, ...(n < 3 && { dedupeKey: `k${n}` }) }),
  )
  ids = (await rowlock.enqueueMany(jobs)).map(({ id }) => id)
  await rowlock.cancel(ids[0]!, { actor: 'ann', reason: 'a try' })
}, 240_000)
afterAll(() => at.drop())

test('a page has typed rows, and says where the next one starts', async () => {
  const first = await rowlock.jobs({ state: 'queued' }, { limit: 10 })
  expect(first.jobs.map(({ id }) => id)).toEqual(ids.slice(15).reverse())
  expect(first.next).toBe(ids[15])
  expect(first.jobs[0]).toMatchObject({
    state: 'queued',
    queue: 'email',
    kind: 'send',
    tenantId: 't4',
    metadata: { n: 24 },
    maxAttempts: 10,
    timeoutMs: 900_000,
    finishedAt: null,
  })
  expect(first.jobs[0]!.enqueuedAt).toBeInstanceOf(Date)
  expect(first.jobs[0]).not.toHaveProperty('input')
  const { input, result, attempts, ...listed } = (await at.client({ schema: SCHEMA }).job(ids[24]!))!
  expect(first.jobs[0]).toEqual(listed)
  const last = await rowlock.jobs({ state: 'queued' }, { limit: 14, before: first.next! })
  expect(last.jobs.length).toBe(14)
  expect(last.next).toBeNull()
})

test('every job comes, page after page', async () => {
  const seen: string[] = []
  for await (const { id } of rowlock.eachJob({ tenantId: ['t1', 't2'] })) seen.push(id)
  expect(seen).toEqual(ids.filter((_, n) => [1, 2].includes(n % 5)).reverse())
  for await (const { id } of rowlock.eachJob()) {
    expect(id).toBe(ids[24])
    break
  }
})

test('jobs are counted', async () => {
  expect(await rowlock.countJobs({ queue: 'email' })).toEqual({ count: 25, about: false })
  expect(await rowlock.countJobs({ dedupeKey: 'k0' })).toEqual({ count: 1, about: false })
  expect(await rowlock.countJobs({ metadata: { n: 7 } })).toEqual({ count: 1, about: false })
})

test('in a transaction of the caller what is not committed is seen there, and nowhere else', async () => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const level of ['read committed', 'repeatable read', 'serializable']) {
    await client.query(`begin isolation level ${level}`)
    const tx: Looks = rowlock.in(client)
    const { id } = await rowlock.in(client).enqueue(send, { n: 1 }, { queue: 'inside' })
    const filter: JobFilter = { queue: 'inside' }
    expect((await tx.jobs(filter)).jobs.map((job) => job.id)).toEqual([id])
    expect(await tx.countJobs(filter)).toEqual({ count: 1, about: false })
    expect(await tx.deadLetters()).toEqual([])
    expect((await tx.changes({ jobId: ids[0]! })).changes.length).toBe(1)
    for await (const job of tx.eachJob(filter)) expect(job.id).toBe(id)
    expect((await rowlock.jobs(filter)).jobs).toEqual([])
    await client.query('rollback')
  }
  await client.end()
})

test('dead letters come in groups, and a group finds its jobs', async () => {
  const table = `${pg.escapeIdentifier(SCHEMA)}.dead_letter`
  await at.sql(`insert into ${table} (id, dead_at, available_at, enqueued_at, attempt, priority, failures, losses,
      queue, kind, cause, error)
    select 1000 + n, now(), now(), now(), 1, 0, 1, 0, 'email', 'send', 'ENOTFOUND',
           jsonb_build_object('message', 'no host ' || n) from generate_series(1, 3) as n`)
  const [group] = await rowlock.deadLetters()
  expect(group).toMatchObject({
    jobs: 3,
    cause: 'ENOTFOUND',
    error: 'no host #',
    sampleId: '1003',
    about: false,
  })
  expect(group!.lastAt).toBeInstanceOf(Date)
  const { error, cause, queue, kind } = group!
  const found = await rowlock.jobs({ error: error!, cause, queue, kind })
  expect(found.jobs.map(({ id }) => id)).toEqual(['1003', '1002', '1001'])
  expect(await rowlock.deadLetters({ queue: 'other' }, { limit: 1 })).toEqual([])
})

test('changes say who did what, and why', async () => {
  const { changes, next } = await rowlock.changes({ actor: 'ann', since: new Date(Date.now() - 3_600_000) })
  expect(changes).toEqual([
    expect.objectContaining({
      verb: 'cancel',
      jobId: ids[0],
      actor: 'ann',
      reason: 'a try',
    }),
  ])
  expect(changes[0]!.at).toBeInstanceOf(Date)
  expect(next).toBeNull()
})

test.each([
  ['jobs', [{ stat: 'failed' }], 'stat'],
  ['jobs', [{}, { limit: 0 }], 'limit'],
  ['jobs', [{}, { limit: 1001 }], 'limit'],
  ['jobs', [{}, { before: 7 }], 'before'],
  ['jobs', [{}, { after: '7' }], 'after'],
  ['jobs', [null], ''],
  ['countJobs', [{ queue: null }], 'queue'],
  ['deadLetters', [{ state: 'done' }], 'state'],
  ['deadLetters', [{}, { limit: 1.5 }], 'limit'],
  ['changes', [{ verbs: 'x' }], 'verbs'],
  ['changes', [{}, { before: '0' }], 'before'],
] as const)('%s refuses %j', async (name, args, path) => {
  const error = await failure(
    (rowlock as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[name]!(...args),
  )
  expect(error.code).toBe('INVALID_OPTION')
  expect(error.path ?? '').toBe(path)
})

test('each job refuses when the first one is asked for', async () => {
  const each = rowlock.eachJob({ stat: 'failed' } as JobFilter)
  expect((await failure(each[Symbol.asyncIterator]().next())).path).toBe('stat')
})
