// Jobs that are alike are put in and completed together, at a lower price; what becomes of them is the same.

import { createRowlock, defineJob } from 'rowlock'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { finish } from '../../src/engine/finish.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, type Hand, held, type Row, register, untilBlocked } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('alike')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.worker, rowlock.queue')
  hand = await register(db)
})

describe('put in together', () => {
  const SHARED: readonly (readonly [what: string, options: Row])[] = [
    ['nothing more', {}],
    ['a queue', { queue: 'email' }],
    ['a priority', { priority: -3 }],
    ['a priority as other languages write it', { priority: 5.0 }],
    ['a delay', { delay: '90s' }],
    ['an instant', { available_at: '2049-01-02T03:04:05.678Z' }],
    ['an end', { expires_at: '2049-01-02T03:04:05.678Z' }],
    ['a time to live', { expires_in: '1 hour' }],
    ['a tenant', { tenant_id: 'acme' }],
    ['an idempotency key', { idempotency_key: 'once' }],
    ['attempts and a backoff', { max_attempts: 3, backoff: { type: 'fixed', delay_ms: 5 } }],
    ['a timeout', { timeout: '12.345s' }],
    ['metadata', { metadata: { trace: 'é' } }],
  ]
  test.each(SHARED)('jobs that share %s are stored as one by one', async (_, options) => {
    const job = { kind: 'k', ...options }
    const inputs = [{ n: 1 }, [2], 'three', null, 5]
    const each = inputs.map((input) => ({ ...job, input }))
    const { first, count } = await db.value('select rowlock.store_alike($1, $2)', [
      job,
      JSON.stringify(inputs),
    ])
    const { ids } = await db.value('select rowlock.store($1, false, false)', [JSON.stringify(each)])
    const rows = await db.sql(
      `select id::text, to_jsonb(w) - array['id', 'available_at', 'enqueued_at', 'expires_at'] as fields,
              -- What the options name is exact; what is counted from now is counted from each call.
              case when available_at < '2049-01-01' then (available_at - enqueued_at)::text
                   else available_at::text end as due,
              case when expires_at < '2049-01-01' then (expires_at - enqueued_at)::text
                   else expires_at::text end as ends
         from rowlock.waiting w order by w.id`,
    )
    const together = Array.from({ length: count }, (_, n) => String(Number(first) + n))
    expect(rows.map(({ id }) => id)).toEqual([...together, ...ids])
    const bare = rows.map(({ id: _id, ...row }) => row)
    expect(bare.slice(0, inputs.length)).toEqual(bare.slice(inputs.length))
    expect(bare.map(({ fields }) => fields.input)).toEqual([...inputs, ...inputs])
  })

  test('ids between which another was drawn are told one by one, in the order of the jobs', async () => {
    await db.sql('alter sequence rowlock.job_id increment by 3')
    try {
      const { ids, existing } = await db.value(`select rowlock.store_alike('{"kind": "k"}', '[1, 2, 3]')`)
      const rows = await db.sql("select id::text from rowlock.waiting w order by (input #>> '{}')::integer")
      expect([ids, existing]).toEqual([rows.map(({ id }) => id), []])
    } finally {
      await db.sql('alter sequence rowlock.job_id increment by 1')
    }
  })

  test.each([1, 2 ** 53 - 2])('ids from %i on are told exactly', async (first) => {
    const before = await db.value('select last_value from rowlock.job_id')
    await db.sql('select setval($1, $2, false)', ['rowlock.job_id', String(first)])
    try {
      const client = createRowlock({ connectionString: db.url })
      const job = defineJob<number>('k')
      const answers = await client.enqueueMany([1, 2, 3, 4, 5].map((n) => job.with(n)))
      await client.close()
      expect(answers).toEqual(
        [0, 1, 2, 3, 4].map((n) => ({ id: String(BigInt(first) + BigInt(n)), created: true })),
      )
      const rows = await db.sql('select id::text from rowlock.waiting w order by w.id')
      expect(rows.map(({ id }) => id)).toEqual(answers.map(({ id }) => id))
    } finally {
      await db.sql('select setval($1, $2)', ['rowlock.job_id', before])
    }
  })

  test('no inputs are no jobs', async () => {
    const reply = await db.value(`select rowlock.store_alike('{"kind": "k"}', '[]')`)
    expect(reply).toEqual({ ids: [], existing: [] })
  })
})

describe('completed together', () => {
  const together = (jobs: readonly Row[], queue: string, more: Row = {}): Row => ({
    claim_id: jobs[0]!.claim_id,
    queue,
    ids: `{${jobs.map(({ id }) => id).join()}}`,
    ...more,
  })
  const complete = (...jobs: Row[]): Promise<string[]> =>
    db.value<string[]>('select rowlock.complete($1)', [JSON.stringify(jobs)])

  test('jobs end as one by one', async () => {
    await enqueueMany(db, [{ tenant_id: 'acme' }, {}, { tenant_id: 'acme' }, {}])
    const jobs = [...(await hand.claim({ limit: 2 })).jobs]
    const others = (await hand.claim()).jobs
    expect(await complete(together(jobs, 'default', { ran_each: '{5,NULL}' }))).toEqual(
      jobs.map(({ id }) => id),
    )
    await complete(held(others[0]!, { ran_ms: 5 }), held(others[1]!))
    const rows = await db.sql(
      `select to_jsonb(f)
                - array['id', 'claimed_at', 'started_at', 'finished_at', 'available_at', 'enqueued_at'] as row,
              f.started_at = greatest(f.claimed_at, f.finished_at - interval '5 ms') as as_said,
              f.started_at = f.claimed_at as at_claim
         from rowlock.finished f order by f.id`,
    )
    const fields = rows.map(({ row }) => row)
    expect(fields.slice(0, 2)).toEqual(fields.slice(2))
    // How long the handler ran says when it began, though not before the claim.
    expect(rows.map(({ as_said }) => as_said).filter((_, n) => n % 2 === 0)).toEqual([true, true])
    expect(rows.map(({ at_claim }) => at_claim).filter((_, n) => n % 2 === 1)).toEqual([true, true])
  })

  test('each job has its own result, and none is no null', async () => {
    await enqueueMany(db, [{}, {}, {}, {}, { queue: 'other' }])
    const { jobs } = await hand.claim([{ limit: 9 }, { queue: 'other', limit: 1 }])
    const results = [undefined, '{"a":1}', 'null', '"text"', '[5]']
    const outcomes = jobs.map(({ id, claim_id, queue, attempt }, n) => ({
      ...{ verb: 'complete' as const, id, claim_id, queue, attempt, ran_ms: n },
      ...(results[n] !== undefined && { result: results[n] }),
    }))
    const { completed } = await finish(db.database, [...outcomes].reverse(), 60_000)
    expect([...completed].sort()).toEqual(jobs.map(({ id }) => id).sort())
    const rows = await db.sql('select id::text, result::text as result from rowlock.finished')
    const told = new Map(rows.map(({ id, result }) => [id, result]))
    const stored = [null, '{"a": 1}', 'null', '"text"', '[5]']
    expect(jobs.map(({ id }) => told.get(id))).toEqual(stored)
  })

  test('a group that does not say its queue has the history that its queue keeps', async () => {
    await enqueue(db, { queue: 'q' })
    await db.sql(`select rowlock.set_queue('q', '{"retention_days": 0}')`)
    const { jobs } = await hand.claim({ queue: 'q' })
    const { queue: _queue, ...group } = together(jobs, 'q')
    expect(await complete(group)).toHaveLength(1)
    expect(await db.value('select count(*)::integer from rowlock.finished')).toBe(0)
  })

  test('jobs of another claim stay where they are', async () => {
    await enqueueMany(db, [{}, {}])
    const mine = (await hand.claim({ limit: 1 })).jobs
    const others = (await hand.claim()).jobs
    expect(await complete(together([...mine, ...others], 'default'))).toEqual(mine.map(({ id }) => id))
    expect(await db.value('select id::text from rowlock.running')).toBe(others[0]!.id)
  })

  test.each([
    ['that is just being written is completed all the same', 'started_at = clock_timestamp()', 3],
    ['that gets another owner meanwhile is not', 'claim_id = gen_random_uuid()', 2],
  ])('a job %s', async (_, change, completed) => {
    await enqueueMany(db, [{}, {}, {}])
    const { jobs } = await hand.claim()
    const other = await db.session()
    await other.query('begin')
    await other.query(`update rowlock.running set ${change} where id = $1`, [jobs[1]!.id])
    const ended = complete(together(jobs, 'default'))
    await untilBlocked(db)
    await other.query('commit')
    expect(await ended).toHaveLength(completed)
    expect(await db.value('select count(*)::integer from rowlock.running')).toBe(3 - completed)
    expect(await db.value('select count(*)::integer from rowlock.finished')).toBe(completed)
  })

  test('a job that is named twice ends once, and keeps its result', async () => {
    const id = await enqueue(db)
    const { jobs } = await hand.claim()
    expect(await complete(together(jobs, 'default'), held(jobs[0]!, { result: 5 }))).toEqual([id])
    expect(await db.sql('select result from rowlock.finished')).toEqual([{ result: 5 }])
  })

  test('a job has the history that its own queue keeps, whatever queue its group names', async () => {
    await enqueueMany(db, [{}, { queue: 'q' }])
    await db.sql(`select rowlock.set_queue('q', '{"retention_days": 30}')`)
    const { jobs } = await hand.claim([{ limit: 1 }, { queue: 'q', limit: 1 }])
    for (const queue of ['default', 'q', 'unknown']) await complete(together(jobs, queue))
    const rows = await db.sql('select queue, retention_days from rowlock.finished f order by queue')
    expect(rows).toEqual([
      { queue: 'default', retention_days: 7 },
      { queue: 'q', retention_days: 30 },
    ])
  })

  test.each([
    [30, 30],
    [7, undefined],
    [undefined, 0],
  ])('history is kept for %s days where its queue says %s', async (kept, days) => {
    const id = await enqueue(db, { queue: 'q' })
    if (days !== undefined) await db.sql(`select rowlock.set_queue('q', $1)`, [{ retention_days: days }])
    const { jobs } = await hand.claim({ queue: 'q' })
    expect(await complete(together(jobs, 'q'))).toEqual([id])
    const [row] = await db.sql('select retention_days from rowlock.finished')
    expect(row?.retention_days).toBe(kept)
  })

  test('rows are locked in the order of ids, whatever the order of the groups', async () => {
    await enqueueMany(db, [{}, {}, {}, {}])
    const early = (await hand.claim({ limit: 1 })).jobs
    const late = (await hand.claim()).jobs
    // Somebody has the first one: none of the others is locked while it is waited for.
    const other = await db.session()
    await other.query('begin')
    await other.query('select from rowlock.running where id = $1 for update', [early[0]!.id])
    const completed = complete(together([...late].reverse(), 'default'), together(early, 'default'))
    await untilBlocked(db)
    const free = await db.sql('select id::text from rowlock.running for update skip locked')
    await other.query('rollback')
    expect(free.map(({ id }) => id).sort()).toEqual(late.map(({ id }) => id).sort())
    expect(await completed).toHaveLength(4)
  })
})
