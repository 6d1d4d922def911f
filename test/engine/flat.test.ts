// Flat as it grows: what a claim and a finish read and write, counted, against what waits, what has ended, and how
// large an input is. `npm run bench -- backlog history payload` measures the same with millions.

import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { fill, type Hand, register } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
let session: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('flat')
  hand = await register(db)
  session = await db.session()
  for (const table of ['waiting', 'running', 'payload']) {
    await db.sql(`alter table rowlock.${table} set (autovacuum_enabled = off)`)
  }
})
afterEach(() => db.sql('truncate rowlock.waiting, rowlock.running, rowlock.payload'))
afterAll(() => db.drop())

/** What a statement cost, those inside of it included. */
async function cost(text: string, values: unknown[]) {
  const { rows } = await session.query(`explain (analyze, buffers, wal, format json) ${text}`, values)
  const { Plan } = rows[0]['QUERY PLAN'][0]
  return {
    buffers: (Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']) as number,
    walBytes: Plan['WAL Bytes'] as number,
    fullPages: Plan['WAL FPI'] as number,
  }
}

/** Blocks that a claim of ten jobs reads; the first one of a session fills its caches, and nothing stays changed. */
async function claimOf(kinds: readonly string[] = ['k']): Promise<number> {
  await db.sql('vacuum analyze rowlock.waiting')
  const wants = JSON.stringify([{ queue: 'default', limit: 10, kinds }])
  const once = async () => {
    await session.query('begin')
    const { buffers } = await cost('select rowlock.claim($1, $2)', [hand.id, wants])
    await session.query('rollback')
    return buffers
  }
  await once()
  return once()
}

const DUE = 1_000
const TWENTY = Array.from({ length: 20 }, (_, n) => `k${n}`)

describe('blocks of a claim', () => {
  test.each([
    ['200,000 jobs wait in its line', 200_000, {}],
    [
      '50,000 of a higher priority are scheduled for next year',
      50_000,
      { priority: '10', available_at: `now() + interval '1 year'` },
    ],
    [
      '50,000 older ones wait in 2,000 other queues',
      50_000,
      { queue: `'queue ' || n % 2000`, available_at: `now() - interval '1 day'` },
    ],
    [
      '50,000 older jobs are of kinds that nobody here handles',
      50_000,
      { kind: `'foreign' || n % 10`, available_at: `now() - interval '1 day'` },
    ],
  ] as [string, number, Record<string, string>][])(
    'are a tenth more at the most where %s',
    async (_, many, crowd) => {
      await fill(db, DUE)
      const alone = await claimOf()
      await fill(db, many, crowd)
      const crowded = await claimOf()
      expect(alone).toBeGreaterThan(50)
      // The index is one level higher, for each time it is entered.
      expect(crowded / alone).toBeLessThanOrEqual(1.1)
    },
    60_000,
  )

  test('are 2.2 times as many for a worker of twenty kinds', async () => {
    await fill(db, DUE)
    const one = await claimOf()
    await db.sql('truncate rowlock.waiting')
    await fill(db, DUE, { kind: `'k' || n % 20` })
    expect((await claimOf(TWENTY)) / one).toBeLessThanOrEqual(2.25)
  })
})

describe('a finish', () => {
  /** Blocks that a finish of a hundred jobs reads. */
  async function finishOf(): Promise<number> {
    await fill(db, 100)
    await hand.claim({ limit: 100 })
    const { rows } = await session.query('select id, claim_id, 1 as ran_ms from rowlock.running order by id')
    const { buffers } = await cost('select rowlock.finish($1)', [JSON.stringify({ complete: rows })])
    return buffers
  }

  test('reads about as much above 100,000 ended jobs of the same day as above none', async () => {
    await finishOf()
    const empty = await finishOf()
    await db.sql(
      `insert into rowlock.finished (id, finished_at, claimed_at, available_at, enqueued_at, worker_id, attempt,
              priority, failures, retention_days, state, queue, kind, input)
       select nextval('rowlock.job_id'), now(), now(), now(), now(), gen_random_uuid(), 1,
              0, 0, 7, 'done', 'default', 'k', '{"n": 1}'
         from generate_series(1, 100000)`,
    )
    await finishOf()
    // The index of the day is one level higher: one block more a job.
    expect(await finishOf()).toBeLessThanOrEqual(empty + 105)
  }, 60_000)
})

describe('an input', () => {
  /** WAL of the whole life of jobs with inputs of so many bytes that do not compress, against those bytes. */
  async function wal(bytes: number, jobs: number): Promise<number> {
    const text = () => randomBytes(bytes).toString('base64').slice(0, bytes)
    const all = JSON.stringify(Array.from({ length: jobs }, () => ({ kind: 'k', input: { text: text() } })))
    await db.sql('checkpoint')
    const stored = await cost('select rowlock.store($1, false, true)', [all])
    const wants = JSON.stringify([{ queue: 'default', limit: jobs, kinds: ['k'] }])
    const claimed = await cost('select rowlock.claim($1, $2)', [hand.id, wants])
    const { rows } = await session.query('select id, claim_id, 1 as ran_ms from rowlock.running order by id')
    expect(rows).toHaveLength(jobs)
    const finished = await cost('select rowlock.finish($1)', [JSON.stringify({ complete: rows })])
    const parts = [stored, claimed, finished]
    // Pages that are written in full after a checkpoint cost once, not by job.
    const fullPages = parts.reduce((sum, part) => sum + part.fullPages, 0) * 8192
    return (parts.reduce((sum, { walBytes }) => sum + walBytes, 0) - fullPages) / (bytes * jobs)
  }

  test('of 100 kB costs at most 1.1 times its size in WAL, from the enqueue to history', async () => {
    const ratio = await wal(100_000, 20)
    expect(ratio).toBeGreaterThan(0.9)
    expect(ratio).toBeLessThanOrEqual(1.1)
  })

  test('of almost 1 MB costs as little', async () => {
    expect(await wal(900_000, 4)).toBeLessThanOrEqual(1.1)
  })
})
