// What a filter finds, held against an oracle: as a page, page after page both ways, with a bounded look, and judged
// again for ids that are given.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueueMany, held, type Row, refusal, register, verb } from './by-hand.ts'
import { crowd, everyJob, FILTERS, fits } from './crowd.ts'

let db: TestRowlock
let jobs: Row[]
beforeAll(async () => {
  db = await rowlockDatabase('search')
  await crowd(db)
  jobs = await everyJob(db)
})
afterAll(() => db.drop())

const expected = (filter: Row, all = jobs): string[] =>
  all.filter((job) => fits(job, filter)).map(({ id }) => id)
const page = (filter: Row, limit: number, before: string | null = null) =>
  db.value<{ jobs: Row[]; next: string | null }>('select rowlock.jobs_page($1, $2, $3)', [
    filter,
    limit,
    before,
  ])

interface Walk {
  readonly newestFirst?: boolean
  readonly limit?: number
  readonly look?: number
  readonly to?: string
}

/** Every id that a filter finds, call after call; each call is held to its limit and its look. */
async function walk(
  filter: Row,
  { newestFirst = true, limit = 40, look = 150, to }: Walk = {},
): Promise<string[]> {
  const found: string[] = []
  let from: string | null = null
  for (let calls = 0; calls < 3_000; calls++) {
    const [row]: Row[] = await db.sql(
      `select ids::text[] as ids, searched_to::text as to from rowlock.search($1, null, $2, $3, $4, $5, $6)`,
      [filter, from, to ?? null, newestFirst, limit, look],
    )
    expect(row.ids.length).toBeLessThanOrEqual(limit)
    found.push(...row.ids)
    if (row.to === null) return found
    if (from !== null) expect(BigInt(row.to) < BigInt(from)).toBe(newestFirst)
    from = row.to
  }
  throw new Error('the walk does not end')
}

test('the crowd has what the filters look for', () => {
  const empty = FILTERS.filter((filter) => expected(filter).length === 0)
  expect(empty).toEqual([{ queue: 'none' }])
  expect(new Set(jobs.map(({ state }) => state)).size).toBe(7)
})

describe.each(FILTERS.map((filter) => [JSON.stringify(filter), filter] as const))('%s', (_, filter) => {
  test('is found page after page, newest first, each job once', async () => {
    const found: string[] = []
    let before: string | null = null
    do {
      const { jobs, next }: { jobs: Row[]; next: string | null } = await page(filter, 40, before)
      expect(jobs.filter((job) => !fits(job, filter))).toEqual([])
      expect(jobs.length === 40 || next === null).toBe(true)
      found.push(...jobs.map(({ id }) => id))
      before = next
    } while (before !== null)
    expect(found).toEqual(expected(filter))
  })

  test('is found with short looks, both ways', async () => {
    expect(await walk(filter)).toEqual(expected(filter))
    expect(await walk(filter, { newestFirst: false })).toEqual(expected(filter).reverse())
    const narrow = await walk(filter, { limit: 9, look: 40, newestFirst: false, to: '150' })
    expect(narrow).toEqual(
      expected(
        filter,
        jobs.filter(({ id }) => Number(id) <= 150),
      ).reverse(),
    )
  })

  test('is judged for ids that are given', async () => {
    const given = jobs.map(({ id }) => id).filter((id) => Number(id) % 2 === 0)
    const text = 'select ids::text[] as ids, searched_to from rowlock.search($1, $2)'
    const [row] = await db.sql(text, [filter, [...given, ...given, '99999']])
    const wanted = expected(filter).filter((id) => Number(id) % 2 === 0)
    expect(row).toEqual({ ids: wanted, searched_to: null })
  })

  test('is counted', async () => {
    const count = { count: expected(filter).length, about: false }
    expect(await db.value('select rowlock.count_jobs($1)', [filter])).toEqual(count)
  })
})

test('a page ends with the last job that fits, and says so', async () => {
  const all = expected({ state: 'failed' }).length
  expect((await page({ state: 'failed' }, all)).next).toBeNull()
  expect((await page({ state: 'failed' }, all - 1)).next).not.toBeNull()
})

test('a list for people has the columns of the view, and the same jobs', async () => {
  const rows = await db.sql('select * from rowlock.jobs($1, 20)', [{ queue: 'q1' }])
  const view = await db.sql('select * from rowlock.job where queue = $1 order by id desc limit 20', ['q1'])
  expect(rows).toEqual(view)
  expect(Object.keys(rows[0])).toEqual(Object.keys(view[0]))
})

test('a page has every column of the view but input and result, ids as text', async () => {
  const [row] = (await page({}, 1)).jobs
  const view = Object.keys((await db.sql('select * from rowlock.job limit 1'))[0])
  const listed = view.filter((name) => !['input', 'result', 'timeout'].includes(name)).concat('timeout_ms')
  expect(Object.keys(row).sort()).toEqual(listed.sort())
  expect(typeof row.id).toBe('string')
})

test('a job that waits, runs and ends while somebody pages is listed once', async () => {
  const { ids } = await enqueueMany(
    db,
    Array.from({ length: 9 }, () => ({ queue: 'moves' })),
  )
  const hand = await register(db)
  const newest = ids.toReversed()
  const first = await page({ queue: 'moves' }, 3)
  const { jobs: taken } = await hand.claim({ queue: 'moves' })
  const second = await page({ queue: 'moves' }, 3, first.next)
  await verb(
    db,
    'complete',
    taken.map((job) => held(job)),
  )
  const third = await page({ queue: 'moves' }, 3, second.next)
  const seen = [first, second, third].flatMap(({ jobs }) => jobs)
  expect(seen.map(({ id }) => id)).toEqual(newest)
  expect(seen.map(({ state }) => state)).toEqual([
    ...Array(3).fill('queued'),
    ...Array(3).fill('running'),
    ...Array(3).fill('done'),
  ])
  expect(third.next).toBeNull()
})

test('a list is one look: jobs that move all the while are on each of its pages once', async () => {
  const { ids } = await enqueueMany(
    db,
    Array.from({ length: 40 }, () => ({ queue: 'restless' })),
  )
  const hand = await register(db)
  let listed = 0
  const move = async () => {
    while (listed < 60) {
      const { jobs: taken } = await hand.claim({ queue: 'restless' })
      await verb(
        db,
        'hand_back',
        taken.map((job) => held(job)),
      )
    }
  }
  const list = async () => {
    for (; listed < 60; listed++) {
      const { jobs: seen } = await page({ queue: 'restless' }, 100)
      expect(seen.map(({ id }) => id)).toEqual(ids.toReversed())
      expect(seen.filter(({ state }) => state !== 'queued' && state !== 'running')).toEqual([])
    }
  }
  await Promise.all([move(), list().finally(() => (listed = 60))])
})

test('a later look in one transaction sees what has happened since', async () => {
  const { ids } = await enqueueMany(db, [{ queue: 'judged' }])
  const session = await db.session()
  await session.query('begin')
  const judge = async () =>
    (await session.query(`select ids::text[] as ids from rowlock.search('{"state": "queued"}', $1)`, [ids]))
      .rows[0].ids
  expect(await judge()).toEqual(ids)
  await db.sql('select rowlock.cancel($1)', [ids[0]])
  expect(await judge()).toEqual([])
  await session.query('rollback')
})

describe('ids at the ends of the earth', () => {
  const MAX = '9223372036854775807'
  const far = ['5', '1099511627776', '4611686018427387904', '9223372036854775806', MAX]
  let other: TestRowlock
  beforeAll(async () => {
    other = await rowlockDatabase('far')
    await other.sql(
      `insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind)
       select e, now(), now(), 'q', 'k' from unnest($1::bigint[]) as e`,
      [far],
    )
  })
  afterAll(() => other.drop())

  test('are walked both ways, gaps and all, and counted', async () => {
    for (const newestFirst of [true, false]) {
      const found: string[] = []
      let from: string | null = null
      do {
        const [row]: Row[] = await other.sql(
          `select ids::text[] as ids, searched_to::text as to
             from rowlock.search('{"kind": "k"}', null, $1, null, $2, 2, 2)`,
          [from, newestFirst],
        )
        found.push(...row.ids)
        from = row.to
      } while (from !== null)
      expect(found).toEqual(newestFirst ? far.toReversed() : far)
    }
    expect(await other.value('select rowlock.count_jobs()')).toEqual({ count: 5, about: false })
    expect((await other.sql('select id::text from rowlock.jobs(p_before => $1)', [MAX])).length).toBe(4)
  })

  test('end a walk that starts behind them', async () => {
    const text = 'select ids::text[] as ids, searched_to as to from rowlock.search($1, null, $2, null, $3)'
    expect(await other.sql(text, ['{}', MAX, false])).toEqual([{ ids: [], to: null }])
    expect(await other.sql(text, ['{}', '0', true])).toEqual([{ ids: [], to: null }])
    expect(await other.sql(text, ['{}', '-9223372036854775808', true])).toEqual([{ ids: [], to: null }])
    expect((await other.sql(text, ['{}', '-9223372036854775808', false]))[0].ids).toEqual(far)
  })
})

describe('a list is refused', () => {
  const CALLS: [string, unknown[], string][] = [
    ['select rowlock.jobs_page($1)', [{ quue: 'x' }], 'quue'],
    ['select rowlock.jobs_page($1)', [[]], ''],
    ["select rowlock.jobs_page('{}', $1)", [0], 'limit'],
    ["select rowlock.jobs_page('{}', $1)", [1001], 'limit'],
    ["select rowlock.jobs_page('{}', $1)", [null], 'limit'],
    ["select rowlock.jobs_page('{}', 1, $1)", [0], 'before'],
    ['select rowlock.jobs_page($1)', [null], ''],
    ['select * from rowlock.jobs($1)', [{ state: 'faild' }], 'state'],
    ["select * from rowlock.jobs('{}', $1)", [-1], 'limit'],
    ['select rowlock.count_jobs($1)', [{ queue: null }], 'queue'],
    ['select * from rowlock.dead_letters($1)', [{ state: 'done' }], 'state'],
    ["select * from rowlock.dead_letters('{}', $1)", [1001], 'limit'],
  ]
  test.each(CALLS)('%s %j', async (text, values, path) => {
    expect(
      await refusal(
        db.sql(
          text,
          values.map((value) =>
            typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
          ),
        ),
      ),
    ).toMatchObject({ code: 'RL001', detail: { path } })
  })
})
