// What a job costs the server, verb by verb, counted: blocks, WAL, dead rows, never time. The figures are the same on
// every major and hardly move, so the bounds are the figures and little more; what breaks them stands below as a twin.
// What a feature adds: `feature-cost.test.ts`. `npm run bench -- cost` has the same of whole drains.

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, register } from './by-hand.ts'
import { type Counted, counted, settled } from './counted.ts'

let db: TestRowlock
let hand: Hand
let session: pg.Client
let bounds: Record<Verb, Cost>
beforeAll(async () => {
  db = await rowlockDatabase('cost')
  hand = await register(db)
  session = await db.session()
  bounds = boundsOf(Number(await db.value('show server_version_num')))
  // Never analysed, and nothing vacuumed meanwhile.
  for (const table of ['waiting', 'running', 'dedupe']) {
    await db.sql(`alter table rowlock.${table} set (autovacuum_enabled = off)`)
  }
})
afterAll(() => db.drop())

/** Of one job. */
type Cost = Counted
type Verb = 'enqueue' | 'enqueue alike' | 'claim' | 'complete' | 'complete one by one'
type Costs = Partial<Record<Verb, Cost>>

/** What a job may cost. Found: 6.06 and 343, 7.2 and 389, 5.09 and 336, 7.09 and 336. */
const boundsOf = (version: number): Record<Verb, Cost> => {
  // Before PostgreSQL 17 a scan by many ids enters its index once for each.
  const entered = version < 170_000 ? 2 : 0
  return {
    enqueue: { blocks: 6.2, walBytes: 348 },
    'enqueue alike': { blocks: 6.2, walBytes: 348 },
    claim: { blocks: 7.4, walBytes: 394 },
    complete: { blocks: 5.2 + entered, walBytes: 340 },
    'complete one by one': { blocks: 7.2 + entered, walBytes: 340 },
  }
}
const BATCH = 500
const SHARED = { kind: 'send-email', queue: 'email' }
const INPUTS = Array.from({ length: BATCH }, (_, n) => ({ to: `user${n}@example.com`, template: 'welcome' }))
const WANTS = JSON.stringify([{ queue: 'email', limit: BATCH, kinds: ['send-email'], alike: true }])

async function cost(text: string, values: unknown[]): Promise<Cost> {
  const { blocks, walBytes } = await counted(session, text, values)
  return { blocks: blocks / BATCH, walBytes: walBytes / BATCH }
}

/** One batch from the enqueue to history, in one of two ways. */
async function live(isAlike: boolean, more: Record<string, (n: number) => unknown> = {}): Promise<Costs> {
  const costs: Costs = {}
  if (isAlike) {
    const values = [JSON.stringify(SHARED), JSON.stringify(INPUTS)]
    costs['enqueue alike'] = await cost('select rowlock.store_alike($1, $2)', values)
  } else {
    const own = (n: number) => Object.fromEntries(Object.entries(more).map(([key, of]) => [key, of(n)]))
    const jobs = JSON.stringify(INPUTS.map((input, n) => ({ ...SHARED, input, ...own(n) })))
    const isKeyed = 'dedupe_key' in more
    costs.enqueue = await cost('select rowlock.store($1, $2, false)', [jobs, isKeyed])
  }
  costs.claim = await cost('select rowlock.claim($1, $2)', [hand.id, WANTS])
  const { rows } = await session.query('select id::text, claim_id from rowlock.running order by id')
  expect(rows).toHaveLength(BATCH)
  const together = {
    claim_id: rows[0].claim_id,
    queue: 'email',
    ids: `{${rows.map(({ id }) => id).join()}}`,
    ran_each: `{${rows.map(() => 12.5).join()}}`,
  }
  const complete = isAlike ? [together] : rows.map((row) => ({ ...row, ran_ms: 12.5 }))
  const verb = isAlike ? 'complete' : 'complete one by one'
  costs[verb] = await cost('select rowlock.finish($1)', [JSON.stringify({ complete })])
  return costs
}

/** Batches in both ways, until all is known. */
const costs = () =>
  settled(async () => ({ ...(await live(true)), ...(await live(false)) }) as Record<Verb, Cost>)

test('no verb reads or logs more for a job than it did', async () => {
  const found = await costs()
  for (const [verb, { blocks, walBytes }] of Object.entries(bounds) as [Verb, Cost][]) {
    expect(found[verb].blocks, `blocks of ${verb}`).toBeLessThanOrEqual(blocks)
    expect(found[verb].walBytes, `WAL of ${verb}`).toBeLessThanOrEqual(walBytes)
  }
})

describe('the bounds notice', () => {
  const TWINS: readonly (readonly [
    what: string,
    verbs: Verb[],
    figure: keyof Cost,
    with_: string,
    without: string,
  ])[] = [
    [
      'an index more on what waits',
      ['enqueue', 'enqueue alike'],
      'blocks',
      'create index twin on rowlock.waiting (enqueued_at)',
      'drop index rowlock.twin',
    ],
    [
      'an index more on what runs',
      ['claim'],
      'blocks',
      'create index twin on rowlock.running (worker_id)',
      'drop index rowlock.twin',
    ],
    [
      'eight bytes more in what waits',
      ['enqueue', 'enqueue alike'],
      'walBytes',
      'alter table rowlock.waiting add column twin bigint not null default 1',
      'alter table rowlock.waiting drop column twin',
    ],
    [
      'eight bytes more in what runs',
      ['claim'],
      'walBytes',
      'alter table rowlock.running add column twin bigint not null default 1',
      'alter table rowlock.running drop column twin',
    ],
    [
      'eight bytes more in history',
      ['complete', 'complete one by one'],
      'walBytes',
      'alter table rowlock.finished add column twin bigint not null default 1',
      'alter table rowlock.finished drop column twin',
    ],
  ]
  test.each(TWINS)('%s', async (_, verbs, figure, make, undo) => {
    await db.sql(make)
    try {
      const found = await costs()
      for (const verb of verbs)
        expect([verb, found[verb][figure] > bounds[verb][figure]]).toEqual([verb, true])
    } finally {
      await db.sql(undo)
    }
  })

  test('a setting of the queue that is looked up for each job', async () => {
    const text = await db.value<string>(
      `select pg_get_functiondef(p.oid) from pg_proc p where p.oid = 'rowlock.complete'::regproc`,
    )
    const twin = text.replace('case when t.queue = g.queue then', 'case when false then')
    expect(twin).not.toBe(text)
    await db.sql(twin)
    const found = await costs()
    await db.sql(text)
    expect(found.complete.blocks).toBeGreaterThan(bounds.complete.blocks)
  })
})

test('two rows die for a job, and a third for a dedupe key', async () => {
  const died = async () => {
    const { rows } = await session.query(
      'select sum(n_tup_upd + n_tup_del)::integer as died from pg_stat_xact_user_tables',
    )
    return rows[0].died as number
  }
  for (const isAlike of [true, false]) {
    await session.query('begin')
    const before = await died()
    await live(isAlike)
    expect((await died()) - before).toBe(2 * BATCH)
    await session.query('rollback')
  }
  await session.query('begin')
  const before = await died()
  await live(false, { dedupe_key: (n) => `key ${n}` })
  expect((await died()) - before).toBe(3 * BATCH)
  await session.query('rollback')
})
