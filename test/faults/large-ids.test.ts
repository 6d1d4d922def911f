// Ids that no 32 bits hold, and ids that no number of JavaScript holds, through every door: each is the same text at
// the end as at the beginning, and never its neighbour's.

import { setTimeout as sleep } from 'node:timers/promises'
import { createRowlock, defineJob, fixed, handle, handleInTransaction, type Rowlock } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { silent } from '../support/ground.ts'
import { until } from '../support/until.ts'

const STARTS = ['3000000000', '9007199254740993', '9223372036854775000'] as const
const once = { retry: { maxAttempts: 1, backoff: fixed(0) } }
const plain = defineJob<string>('plain', once)
const written = defineJob<null>('written', once)
const parked = defineJob<number>('parked', { queue: 'parked' })

describe.each(STARTS)('ids from %s on', (start) => {
  let db: TestRowlock
  let rowlock: Rowlock
  beforeAll(async () => {
    db = await rowlockDatabase('large ids')
    await db.sql(`select setval('rowlock.job_id', $1, false)`, [start])
    await db.sql('create table business (job_id bigint)')
    rowlock = createRowlock({ connectionString: db.url })
  })
  afterEach(() => db.sql('delete from business'))
  afterAll(async () => {
    await rowlock.close()
    await db.drop()
  })
  /** All that were given out are apart from each other, and not below the beginning. */
  const checked = (ids: readonly string[]) => {
    for (const id of ids) expect(BigInt(id) >= BigInt(start)).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
    return ids
  }
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { url: db.url })
    expect([code, stderr]).toEqual([0, expect.any(String)])
    return stdout
  }

  test('are enqueued, found by key, run, and known by their handlers', async () => {
    const seen: string[] = []
    const keys: string[] = []
    const one = await rowlock.enqueue(plain, 'well', { dedupeKey: 'k' })
    expect(await rowlock.enqueue(plain, 'well', { dedupeKey: 'k' })).toEqual({ id: one.id, created: false })
    const [bad, tx] = await rowlock.enqueueMany([plain.with('bad'), written.with(null)])
    const [sql] = await db.sql(`select id::text from rowlock.enqueue('plain', '"well"')`)
    const ids = checked([one.id, bad!.id, tx!.id, sql.id])
    const worker = rowlock.worker({
      handlers: [
        handle(plain, ({ input, job, idempotencyKey }) => {
          seen.push(job.id)
          keys.push(idempotencyKey)
          if (input === 'bad') throw new Error('no')
        }),
        handleInTransaction(written, ({ job, tx }) =>
          tx.query('insert into business values ($1)', [job.id]).then(() => {}),
        ),
      ],
      poll: 50,
      logger: silent,
    })
    await worker.start()
    const live = 'select from rowlock.waiting union all select from rowlock.running'
    await until('all have ended', async () => (await db.sql(live)).length === 0)
    await worker.stop()
    expect(seen.sort()).toEqual([one.id, bad!.id, sql.id].sort())
    expect(new Set(keys).size).toBe(3)
    expect(await db.sql('select job_id::text as id from business')).toEqual([{ id: tx!.id }])
    for (const id of ids) {
      const job = (await rowlock.job(id))!
      expect([job.id, job.state]).toEqual([id, id === bad!.id ? 'dead_letter' : 'done'])
      expect((await rowlock.story(id))[0]).toMatchObject({ event: 'enqueued' })
      expect((await rowlock.why(id)).length).toBeGreaterThan(0)
    }
    await rowlock.redrive(bad!.id)
    expect(await rowlock.job(bad!.id)).toMatchObject({ state: 'queued', failures: 0 })
    const copy = await rowlock.retry(one.id)
    expect((await rowlock.job(copy.id))!.retriedFrom).toBe(one.id)
    await rowlock.cancel(copy.id)
    await rowlock.purge(one.id)
    expect(await rowlock.job(one.id)).toBeNull()
    expect(await rowlock.job(copy.id)).toMatchObject({ state: 'cancelled', retriedFrom: one.id })
  })

  test('are listed page after page, changed by ids and by filter, each one and no neighbour', async () => {
    const ids = checked(
      (
        await rowlock.enqueueMany(
          Array.from({ length: 9 }, (_, n) => parked.with(n, { metadata: { half: n > 2 && n < 5 } })),
        )
      ).map(({ id }) => id),
    )
    const paged: string[] = []
    for await (const job of rowlock.eachJob({ queue: 'parked' })) paged.push(job.id)
    expect(paged.sort()).toEqual([...ids].sort())
    await rowlock.prioritize(ids[0]!, 5)
    expect((await rowlock.job(ids[0]!))!.priority).toBe(5)
    expect((await rowlock.job(ids[1]!))!.priority).toBe(0)
    expect(await rowlock.cancelMany([ids[1]!, ids[2]!])).toMatchObject([
      { id: ids[1], answer: 'cancelled' },
      { id: ids[2], answer: 'cancelled' },
    ])
    const bulk = await rowlock.bulk('cancel', { queue: 'parked', metadata: { half: true } })
    expect(await bulk.run({ limit: 1 })).toMatchObject({ changed: 2, outcome: 'done' })
    for (const [n, id] of ids.entries()) {
      expect([id, (await rowlock.job(id))!.state]).toEqual([id, n > 0 && n < 5 ? 'cancelled' : 'queued'])
    }
    expect((await rowlock.changes({ jobId: ids[1]! })).changes.map(({ jobId }) => jobId)).toEqual([ids[1]])
  })

  test('go on from page to page, to the next id and not to its neighbour', async () => {
    const ids = checked(
      (
        await rowlock.enqueueMany(Array.from({ length: 7 }, (_, n) => parked.with(n, { queue: 'pages' })))
      ).map(({ id }) => id),
    )
    const paged: string[] = []
    let next: string | null | undefined
    do {
      const page = await rowlock.jobs({ queue: 'pages' }, { limit: 2, ...(next && { before: next }) })
      paged.push(...page.jobs.map(({ id }) => id))
      next = page.next
    } while (next !== null)
    expect(paged).toEqual(ids.toReversed())
    expect((await rowlock.jobs({ queue: 'pages' }, { before: ids[3]! })).jobs.map(({ id }) => id)).toEqual(
      ids.slice(0, 3).toReversed(),
    )
  })

  test('are changed one by one and many at once: while they run, failed, and done', async () => {
    const stubborn = defineJob<null>('stubborn', { queue: 'verbs', ...once })
    const wrong = defineJob<string>('wrong', { queue: 'verbs', ...once })
    const worker = rowlock.worker({
      handlers: [
        handle(stubborn, ({ signal }) => sleep(60_000, undefined, { signal })),
        handle(wrong, ({ input }) => {
          if (input === 'bad') throw new Error('no')
        }),
      ],
      poll: 50,
      heartbeat: 300,
      logger: silent,
    })
    await worker.start()
    const becomes = (id: string, state: string) =>
      until(`${id} is ${state}`, async () => (await rowlock.job(id))!.state === state)
    const [called, running] = checked(
      (await rowlock.enqueueMany([stubborn.with(null), stubborn.with(null)])).map(({ id }) => id),
    )
    await becomes(called!, 'running')
    await becomes(running!, 'running')
    expect(await rowlock.cancel(called!)).toBe('requested')
    await becomes(called!, 'cancelled')
    expect((await rowlock.job(running!))!.state).toBe('running')
    expect(await rowlock.cancelMany([running!])).toMatchObject([{ id: running, answer: 'requested' }])
    await becomes(running!, 'cancelled')

    const later = { delay: '1h' } as const
    const delayed = checked(
      (await rowlock.enqueueMany(['a', 'b', 'c', 'bad'].map((one) => wrong.with(one, later)))).map(
        ({ id }) => id,
      ),
    )
    await rowlock.runNow(delayed[0]!)
    await becomes(delayed[0]!, 'done')
    expect((await rowlock.job(delayed[1]!))!.state).toBe('queued')
    expect(await rowlock.prioritizeMany([delayed[1]!], 7)).toMatchObject([{ id: delayed[1] }])
    expect((await rowlock.job(delayed[1]!))!.priority).toBe(7)
    expect(await rowlock.runNowMany(delayed.slice(2))).toMatchObject(delayed.slice(2).map((id) => ({ id })))
    await becomes(delayed[2]!, 'done')
    const bad = delayed[3]!
    await becomes(bad, 'dead_letter')
    expect(await rowlock.redriveMany([bad])).toMatchObject([{ id: bad }])
    await becomes(bad, 'dead_letter')
    expect(await rowlock.discardMany([bad])).toMatchObject([{ id: bad }])
    const [retried] = await rowlock.retryMany([delayed[0]!])
    expect(retried).toMatchObject({ id: delayed[0] })
    const copies = async () => (await rowlock.jobs({ retriedFrom: delayed[0]! })).jobs
    await until('its copy is done', async () => (await copies())[0]?.state === 'done')
    checked((await copies()).map(({ id }) => id))
    expect(await rowlock.purgeMany([delayed[2]!])).toMatchObject([{ id: delayed[2] }])
    expect(await rowlock.job(delayed[2]!)).toBeNull()
    expect((await rowlock.job(delayed[0]!))!.state).toBe('done')
    await worker.stop()
  })

  test('of a worker that is gone are given back, each to its own line', async () => {
    const [id] = checked([(await rowlock.enqueue(parked, 1, { queue: 'lost' })).id])
    const workerId = '00000000-0000-4000-8000-000000000001'
    await db.sql(`select rowlock.register($1, '1 hour', '{}')`, [workerId])
    const want = [{ queue: 'lost', limit: 1, kinds: ['parked'] }]
    await db.sql('select rowlock.claim($1, $2)', [workerId, JSON.stringify(want)])
    expect(await rowlock.job(id!)).toMatchObject({ id, state: 'running' })
    await db.sql(`update rowlock.worker set expires_at = rowlock.now() - interval '1 s' where id = $1`, [
      workerId,
    ])
    await db.sql('select rowlock.reap()')
    expect(await rowlock.job(id!)).toMatchObject({ id, state: 'queued', attempt: 1, failures: 0 })
    expect((await rowlock.story(id!)).map(({ event }) => event)).toContain('enqueued')
  })

  test('are the same on the command line', async () => {
    const out = await cli('enqueue', 'parked', '5', '--queue', 'parked', '--delay', '1h', '--json')
    const [{ id }] = linesOf(out)
    checked([id])
    expect(linesOf(await cli('job', id, '--json'))).toMatchObject([
      { id, story: [{ event: 'enqueued' }, { event: 'queued' }] },
    ])
    expect(await cli('job', id)).toContain(id)
    expect(await cli('why', id)).not.toBe('')
    const before = String(BigInt(id) + 1n)
    const older = await cli('jobs', '--queue', 'parked', '--before', before, '--limit', '1', '--json')
    expect(linesOf(older)).toMatchObject([{ id }])
    expect(linesOf(await cli('jobs', '--queue', 'parked', '--limit', '1', '--json'))).toMatchObject([{ id }])
    expect(linesOf(await cli('cancel', id, '--json'))).toMatchObject([{ id, answer: 'cancelled' }])
    expect((await rowlock.job(id))!.state).toBe('cancelled')
    const changes = linesOf(await cli('changes', '--job-id', id, '--json'))
    expect(changes).toMatchObject([{ jobId: id, verb: 'cancel' }])
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      ids.push(
        linesOf(await cli('enqueue', 'parked', '5', '--queue', 'all', '--delay', '1h', '--json'))[0].id,
      )
    }
    await cli('run-now', ids[1]!)
    expect((await rowlock.job(ids[1]!))!.availableAt.getTime()).toBeLessThan(Date.now() + 60_000)
    await cli('cancel', '--queue', 'all', '--yes')
    for (const one of checked(ids)) expect((await rowlock.job(one))!.state).toBe('cancelled')
  })
})
