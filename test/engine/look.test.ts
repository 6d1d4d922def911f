// What looks cost, in blocks and jobs looked at, where there is much that does not fit; and what counts, groups of
// dead letters and changes say.

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, fill, type Row, refusal } from './by-hand.ts'

const MANY = 120_000
let db: TestRowlock
let session: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('look')
  session = await db.session()
  await db.sql(`alter table rowlock.waiting set (autovacuum_enabled = off)`)
  await db.sql(`alter table rowlock.finished_7_${await db.value(`select to_char(now() at time zone 'UTC', 'YYYYMMDD')`)}
                  set (autovacuum_enabled = off)`)
  await db.sql(`
    insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
                                  retention_days, state, queue, kind, tenant_id, dedupe_key)
    select n, date_trunc('day', now() at time zone 'UTC') at time zone 'UTC', now(), now(), 1, 0, 0, 7,
           case when n % 20000 = 0 then 'failed' else 'done' end, 'q' || n % 5, 'k',
           case when n = 7 then 'rare' else 'many' end, case when n % 30000 = 0 then 'key' end
      from generate_series(1, ${MANY}) as n`)
  await db.sql(`select setval('rowlock.job_id', ${MANY})`)
  await fill(db, 20_000, { queue: `case when n = 5 then 'short' else 'long' end` })
})
afterAll(() => db.drop())

/** Blocks that a call reads, warm, nested statements and their planning included; the least of three. */
async function blocks(text: string, values: unknown[] = []): Promise<number> {
  const figures: number[] = []
  for (let n = 0; n < 4; n++) {
    const { rows } = await session.query(`explain (analyze, buffers, format json) ${text}`, values)
    const top = rows[0]['QUERY PLAN'][0].Plan
    if (n > 0) figures.push(top['Shared Hit Blocks'] + top['Shared Read Blocks'])
  }
  return Math.min(...figures)
}
const search = 'select * from rowlock.search($1, p_limit => 50)'

describe.each(['never analysed', 'analysed'])('blocks read, %s,', (state) => {
  beforeAll(async () => {
    if (state === 'analysed') await db.sql('analyze rowlock.waiting; analyze rowlock.finished')
  })

  // Most of them are read for the plan: each day's tables and indexes.
  test.each([
    ['a page of anything', 500, {}],
    ['what failed, among 120,000 that did not', 500, { state: 'failed' }],
    ['dead letters and running jobs, of which there are none', 600, { state: ['dead_letter', 'running'] }],
    ['a key in history', 500, { dedupe_key: 'key', state: ['done', 'failed'] }],
    ['a key anywhere', 1500, { dedupe_key: 'key' }],
    ['a key that nobody had', 500, { idempotency_key: 'none', state: 'done' }],
    ['a short line beside a long one', 1200, { queue: 'short', state: 'queued' }],
    [
      'what ended on days that are empty',
      500,
      { ended_since: new Date(Date.now() + 86_400_000).toISOString() },
    ],
  ])('are few for %s', async (_, most, filter) => {
    expect(await blocks(search, [filter])).toBeLessThanOrEqual(most)
  })

  test('are those of 50,000 jobs at most, however rare what is looked for', async () => {
    const page = await db.value<Row>(`select rowlock.jobs_page('{"tenant_id": "rare"}')`)
    expect(page).toEqual({ jobs: [], next: String(MANY + 20_000 - 50_000 + 1) })
    const [all, rare] = [
      await blocks('select count(*) from rowlock.finished'),
      await blocks(search, [{ tenant_id: 'rare' }]),
    ]
    expect(rare).toBeLessThan(all * 2)
    let next: string | null = page.next
    const found: Row[] = []
    while (next !== null) {
      const [row] = await db.sql(`select rowlock.jobs_page('{"tenant_id": "rare"}', 50, $1) as page`, [next])
      found.push(...row.page.jobs)
      next = row.page.next
    }
    expect(found.map(({ id }) => id)).toEqual(['7'])
  })

  test('for ids that are given grow with the ids', async () => {
    const judge = 'select * from rowlock.search($1, $2)'
    const ids = Array.from({ length: 100 }, (_, n) => n * 1_000 + 1)
    // Two or three for each table that history has.
    expect(await blocks(judge, [{}, ids])).toBeLessThan(100 * 60)
  })
})

test('a list for people says when more may be behind', async () => {
  const notices: string[] = []
  session.on('notice', ({ message }) => notices.push(message!))
  await session.query(`select * from rowlock.jobs('{"tenant_id": "rare"}')`)
  await session.query(`select * from rowlock.jobs('{}', 10)`)
  expect(notices).toEqual([
    `looked at 50,000 jobs; older ones may fit: go on with p_before => ${MANY - 29_999}`,
  ])
})

describe('a count', () => {
  const count = (filter: Row) => db.value<Row>('select rowlock.count_jobs($1)', [filter])

  test('is exact for what an index leads to', async () => {
    expect(await count({ state: 'failed' })).toEqual({ count: 6, about: false })
    expect(await count({ queue: 'short', state: 'queued' })).toEqual({ count: 1, about: false })
  })

  test('beyond 10,000 is about, and near', async () => {
    const near = async (filter: Row, real: number) => {
      const reply = await count(filter)
      expect(reply.about).toBe(true)
      expect(reply.count).toBeGreaterThan(real * 0.8)
      expect(reply.count).toBeLessThan(real * 1.2)
    }
    await near({}, MANY + 20_000)
    await near({ state: 'queued' }, 20_000)
    await near({ queue: 'q3' }, MANY / 5)
    await near({ state: 'done', tenant_id: 'many' }, MANY)
  })
})

describe('dead letters', () => {
  beforeAll(async () => {
    await db.sql(`
      insert into rowlock.dead_letter (id, dead_at, available_at, enqueued_at, attempt, priority, failures, losses,
                                       queue, kind, tenant_id, cause, error)
      select 900000 + n, timestamptz '2026-01-01 00:00Z' + n * interval '1 s', now(), now(), 10, 0, 10, 0, 'q', 'k',
             't' || n % 2, case when n % 10 = 0 then 'lost' else 'Error' end,
             case when n % 10 > 0 then jsonb_build_object('message', 'order ' || n || ' is gone') end
        from generate_series(1, 100) as n`)
  })

  test('are grouped by queue, kind, cause and error, the largest group first', async () => {
    const groups = await db.sql('select * from rowlock.dead_letters()')
    expect(groups).toEqual([
      {
        queue: 'q',
        kind: 'k',
        cause: 'Error',
        error: 'order # is gone',
        jobs: '90',
        first_at: new Date('2026-01-01T00:00:01Z'),
        last_at: new Date('2026-01-01T00:01:39Z'),
        sample_id: '900099',
        about: false,
      },
      expect.objectContaining({ cause: 'lost', error: null, jobs: '10', sample_id: '900100' }),
    ])
    const filter = { error: groups[0].error, cause: 'Error' }
    expect(await db.value('select rowlock.count_jobs($1)', [filter])).toEqual({ count: 90, about: false })
    expect(await db.sql('select jobs from rowlock.dead_letters($1, 1)', [{ tenant_id: 't1' }])).toEqual([
      { jobs: '50' },
    ])
    expect(await db.sql('select jobs from rowlock.dead_letters($1)', [{ tenant_id: 'none' }])).toEqual([])
  })

  test('of a flood are the newest 20,000, and said to be about', async () => {
    await session.query('begin')
    await session.query(`
      insert into rowlock.dead_letter (id, dead_at, available_at, enqueued_at, attempt, priority, failures, losses,
                                       queue, kind, cause)
      select 1000000 + n, now(), now(), now(), 10, 0, 10, 0, 'flood', 'k', 'Error' from generate_series(1, 50001) as n`)
    const { rows } = await session.query('select queue, jobs, about from rowlock.dead_letters()')
    expect(rows).toEqual([{ queue: 'flood', jobs: '20000', about: true }])
    await session.query('rollback')
  })
})

describe('changes', () => {
  beforeAll(async () => {
    await db.sql(`insert into rowlock.audit (at, verb, job_id, queue, actor, reason, detail)
      select timestamptz '2026-01-01 00:00Z' + n * interval '1 min', (array['cancel', 'pause'])[n % 2 + 1],
             case when n % 2 = 0 then n end, case when n % 2 = 1 then 'q' || n % 3 end, 'ann', 'why', '{"n": 1}'
        from generate_series(1, 200) as n`)
  })
  const page = (filter: Row, limit = 50, before: string | null = null) =>
    db.value<Row>('select rowlock.changes_page($1, $2, $3)', [filter, limit, before])

  test('are paged, newest first, each once', async () => {
    const seen: string[] = []
    let before: string | null = null
    do {
      const { changes, next }: Row = await page({ verb: 'cancel' }, 30, before)
      seen.push(...changes.map(({ job_id }: Row) => job_id))
      before = next
    } while (before !== null)
    expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => String(200 - n * 2)))
  })

  test('are found by each condition', async () => {
    const found = async (filter: Row) => (await page(filter, 1000)).changes.length
    expect(await found({ job_id: 100 })).toBe(1)
    expect(await found({ job_id: '101' })).toBe(0)
    expect(await found({ queue: 'q1' })).toBe(34)
    expect(await found({ actor: 'bob' })).toBe(0)
    expect(await found({ since: '2026-01-01T00:10Z', until: '2026-01-01T00:20' })).toBe(10)
    expect(await found({ verb: 'pause', since: '2026-01-01T03:00Z' })).toBe(10)
  })

  test('for people are the same, as rows', async () => {
    expect((await db.sql('select * from rowlock.changes(p_limit => 1)'))[0]).toMatchObject({
      at: new Date('2026-01-01T03:20:00Z'),
      verb: 'cancel',
      job_id: '200',
      queue: null,
      actor: 'ann',
      reason: 'why',
      detail: { n: 1 },
    })
    await enqueue(db)
    expect((await refusal(db.sql(`select * from rowlock.changes('{"verbs": "x"}')`))).detail).toEqual({
      path: 'verbs',
    })
  })

  test('of one job cost nothing beside many of others', async () => {
    await db.sql(
      `insert into rowlock.audit (at, verb, job_id) 
       select now(), 'cancel', 5000 + n from generate_series(1, 60000) as n`,
    )
    expect(await blocks(`select rowlock.changes_page('{"job_id": 100}')`)).toBeLessThan(30)
    const { changes, next } = await page({ actor: 'ann' })
    expect(changes).toEqual([])
    expect((await page({ actor: 'ann' }, 50, next)).changes.length).toBe(50)
  })

  test.each([
    [{ job: 1 }, 'job'],
    [{ job_id: -1 }, 'job_id'],
    [{ since: 'now' }, 'since'],
    [{ queue: null }, 'queue'],
    [{ actor: 1 }, 'actor'],
    [{ since: '2026-02-01', until: '2026-01-01' }, 'until'],
  ])('are refused with %j', async (filter, path) => {
    expect(await refusal(page(filter))).toMatchObject({ code: 'RL001', detail: { path } })
  })
})
