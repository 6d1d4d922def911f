// What a filter finds is counted where it stands together: a short queue below much of another, one kind in a long
// history. None is said only where none is there.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import type { Row } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('count')
  await db.sql(`
    insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, priority, cause, metadata)
    select n, now() - n * interval '1 ms' + case when n % 2000 = 0 then interval '1 day' else '0' end, now(), 'email',
           'k' || n % 7, n % 3, case when n % 1000 = 1 then 'Error' end, case when n = 5 then '{"n": 5}'::jsonb end
      from generate_series(1, 6000) as n`)
  await db.sql(`
    insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind)
    select 10000 + n, now(), now(), 'other', 'k' from generate_series(1, 200000) as n`)
  await db.sql(`
    insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind)
    select 500000 + n, now() + interval '1 day', now(), 'other', 'k' from generate_series(1, 300) as n`)
  await db.sql(`
    insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
                                  retention_days, state, queue, kind, input)
    select 1000000 + n, now(), now(), now(), 1, 0, 0, 7, 'done', 'q',
           case when n between 80000 and 110000 then 'import' else 'other' end, to_jsonb(repeat('x', 200))
      from generate_series(1, 250000) as n`)
})
afterAll(() => db.drop())

const count = (filter: Row) => db.value<Row>('select rowlock.count_jobs($1)', [filter])

describe('jobs that wait below many of another queue', () => {
  test.each<[Row, number]>([
    [{ queue: 'email', state: ['queued', 'retryable'] }, 6_000],
    [{ queue: 'email' }, 6_000],
    [{ queue: ['email', 'none'], state: 'retryable' }, 6],
    [{ kind: 'k3', state: 'due' }, 856],
    [{ queue: 'email', kind: ['k1', 'k2'], state: 'queued' }, 1_714],
    [{ state: 'scheduled' }, 303],
    [{ queue: 'other', state: 'scheduled' }, 300],
    [{ queue: 'email', metadata: { n: 5 }, state: 'queued' }, 1],
  ])('%j are counted exactly', async (filter, expected) => {
    const [row] = await db.sql(
      `select count(*)::integer as n from rowlock.job j
        where j.id <= 600000
          and ($1::jsonb -> 'queue' is null or j.queue = any (rowlock.texts($1 -> 'queue')))
          and ($1::jsonb -> 'kind' is null or j.kind = any (rowlock.texts($1 -> 'kind')))
          and ($1::jsonb -> 'metadata' is null or j.metadata @> ($1 -> 'metadata'))
          and (rowlock.texts($1 -> 'state') is null or j.state = any (rowlock.texts($1 -> 'state'))
            or $1 ->> 'state' = 'due' and j.available_at <= now()
            or $1 ->> 'state' = 'scheduled' and j.available_at > now() and j.state = 'queued')`,
      [filter],
    )
    expect(row).toEqual({ n: expected })
    expect(await count({ ...filter, state: filter.state ?? ['queued', 'retryable', 'running'] })).toEqual({
      count: expected,
      about: false,
    })
  })

  test('are on the first page of a list', async () => {
    const page = await db.value<{ jobs: Row[]; next: string }>(`select rowlock.jobs_page($1, 50, null)`, [
      { queue: 'email', state: ['queued', 'retryable'] },
    ])
    expect(page.jobs.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, n) => `${6_000 - n}`))
    const oldest = await db.value<{ jobs: Row[]; next: null }>(`select rowlock.jobs_page($1, 50, 51)`, [
      { queue: 'email', state: 'queued' },
    ])
    expect(oldest).toMatchObject({ next: null })
    expect(oldest.jobs).toHaveLength(49)
  })
})

test.each([true, false])(
  'a queue of some thousands is walked to its end, each job once: newest first %s',
  async (isNewestFirst) => {
    const found: number[] = []
    let from: string | null = null
    let calls = 0
    do {
      const [row]: Row[] = await db.sql(
        `select ids::integer[] as ids, searched_to::text as to from rowlock.search($1, null, $2, null, $3, 700)`,
        [{ queue: 'email', state: ['queued', 'retryable'] }, from, isNewestFirst],
      )
      found.push(...row.ids)
      from = row.to
      calls++
    } while (from !== null)
    const all = Array.from({ length: 6_000 }, (_, n) => n + 1)
    expect(found).toEqual(isNewestFirst ? all.reverse() : all)
    expect(calls).toBeLessThan(12)
  },
)

test('a kind that stands together in a long history is counted about', async () => {
  const { count: n, about } = await count({ kind: 'import', state: 'done' })
  expect(about).toBe(true)
  expect(n).toBeGreaterThan(30_001 * 0.7)
  expect(n).toBeLessThan(30_001 * 1.3)
})

test('a bulk change of them begins with what there is', async () => {
  const begin = (verb: string, filter: Row) =>
    db.value<Row>('select rowlock.begin_bulk($1, $2)', [verb, filter])
  expect(await begin('cancel', { queue: 'email' })).toMatchObject({ matched: 6_000, about: false })
  const { matched } = await begin('purge', { kind: 'import' })
  expect(matched).toBeGreaterThan(20_000)
})

test('none is said to be none only where all was looked at', async () => {
  expect(await count({ queue: 'nowhere', state: 'queued' })).toEqual({ count: 0, about: false })
  expect(await count({ queue: 'nowhere', state: 'done' })).toEqual({ count: 0, about: true })
})
