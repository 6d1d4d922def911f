// Counted figures: what a worker asks of the server, statement by statement.

import { createRowlock, defineJob, handle, handleInTransaction } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('figures')
  await rig.db.sql('create table business (job_id bigint)')
  proxy = await startProxy(rig.db.url)
})
afterEach(() => rig.rest())
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job')
/** What was asked since the mark, without what runs on its own: maintenance, and the search for lost claims. */
function since(mark: number): string[] {
  const texts = proxy.statements.slice(mark).map(({ text }) => text)
  return texts.flatMap(
    (text) => /"(claim|finish|start|heartbeat|sleep|hold|complete_in_transaction)"/.exec(text)?.[1] ?? [],
  )
}
/** Quiet: nothing but what the jobs cost. */
const quiet = { lease: '1h', heartbeat: '20m', poll: '5m', maintenance: '1h', listen: false } as const

test('a batch whose jobs end together costs one claim and one finish', async () => {
  const worker = await rig.start(
    {
      ...quiet,
      handlers: [handle(job, () => {})],
      flush: 200,
      queues: { default: { concurrency: 100, prefetch: 0 } },
    },
    proxy.url,
  )
  await until('it has looked in vain', () => since(0).includes('claim'))
  await worker.stop()
  await rig.rowlock.enqueueMany(Array.from({ length: 100 }, (_, n) => job.with(n)))
  const mark = proxy.statements.length
  const next = await rig.start(
    {
      ...quiet,
      handlers: [handle(job, () => {})],
      flush: 200,
      queues: { default: { concurrency: 100, prefetch: 0 } },
    },
    proxy.url,
  )
  await rig.idle()
  await next.stop()
  const asked = since(mark)
  expect(asked.filter((verb) => verb === 'finish')).toHaveLength(1)
  expect(asked.filter((verb) => verb === 'start')).toHaveLength(0)
  // One that took the batch, and at most two that looked again and found nothing; one of them in two steps, where a
  // busy machine made the look before it slow.
  expect(asked.filter((verb) => verb === 'claim').length).toBeLessThanOrEqual(4)
})

test('a thousand jobs cost a worker five statements, and one look in vain', async () => {
  for (let n = 0; n < 5; n++) {
    await rig.rowlock.enqueueMany(Array.from({ length: 1_000 }, (_, m) => job.with(m)))
  }
  const mark = proxy.statements.length
  const worker = await rig.start(
    { ...quiet, handlers: [handle(job, () => {})], queues: { default: { concurrency: 400, prefetch: 100 } } },
    proxy.url,
  )
  await rig.idle()
  await worker.stop()
  // Ten claims and ten finishes of 500 each; three looks at the end, and what a busy machine splits.
  expect(since(mark).length / 5).toBeLessThanOrEqual(8)
})

test('a thousand jobs that are alike are one statement, and little more than their inputs', async () => {
  const client = createRowlock({ connectionString: proxy.url })
  await client.enqueue(job, 0)
  const [mark, sent] = [proxy.statements.length, proxy.sentBytes]
  const inputs = Array.from({ length: 1_000 }, (_, n) => n)
  await client.enqueueMany(
    inputs.map((n) => job.with(n, { queue: 'of a name', priority: 3, tenantId: 'acme' })),
  )
  expect(proxy.statements.slice(mark).map(({ text }) => /"\w+"\(/.exec(text)?.[0])).toEqual([
    '"store_alike"(',
  ])
  expect(proxy.sentBytes - sent - JSON.stringify(inputs).length).toBeLessThanOrEqual(220)
  await client.close()
})

test('no transaction of the worker is open while a default handler runs', async () => {
  let end: () => void = () => {}
  const handler = handle(
    job,
    () =>
      new Promise<void>((resolve) => {
        end = resolve
      }),
  )
  const worker = await rig.start({ handlers: [handler], heartbeat: 100 })
  const { id } = await rig.rowlock.enqueue(job, 1)
  await until('it runs and is known to', async () => (await rig.rowlock.job(id))?.startedAt)
  for (let n = 0; n < 20; n++) {
    const open = await rig.db.sql(`select query from pg_stat_activity
      where datname = current_database() and application_name like 'rowlock%' and state like 'idle in transaction%'`)
    expect(open).toEqual([])
  }
  end()
  await rig.becomes(id, 'done')
  await worker.stop()
})

test('a transactional job costs seven statements besides its own', async () => {
  const handler = handleInTransaction(job, async ({ tx, job }) => {
    await tx.query('insert into business values ($1)', [job.id])
  })
  const worker = await rig.start({ ...quiet, handlers: [handler] }, proxy.url)
  await until('it has looked in vain', () => since(0).includes('claim'))
  await worker.stop()
  const { id } = await rig.rowlock.enqueue(job, 1)
  const mark = proxy.statements.length
  const next = await rig.start({ ...quiet, handlers: [handler] }, proxy.url)
  await rig.becomes(id, 'done')
  await next.stop()
  const asked = proxy.statements.slice(mark).filter(({ session }) => session === 'rowlock handlers')
  expect(asked.map(({ text }) => text.trim().slice(0, 12))).toEqual([
    'begin isolat',
    'select pg_ba',
    'select "rowl',
    'insert into ',
    'select "rowl',
    'commit',
  ])
  expect(since(mark).filter((verb) => verb === 'start' || verb === 'finish')).toEqual(['start'])
})

test('the heartbeat carries what has started: short jobs never cost a write of their own', async () => {
  let end: () => void = () => {}
  const gate = new Promise<void>((resolve) => {
    end = resolve
  })
  const worker = await rig.start({ handlers: [handle(job, () => gate)], heartbeat: 100 }, proxy.url)
  const mark = proxy.statements.length
  const all = await rig.rowlock.enqueueMany([1, 2, 3].map((n) => job.with(n)))
  for (const { id } of all)
    await until('it is known to run', async () => (await rig.rowlock.job(id))?.startedAt)
  expect(since(mark)).not.toContain('start')
  end()
  await rig.idle()
  await worker.stop()
})
