// Counted figures, so that a slower plan is seen: plans and the blocks that a claim reads, never time. What a whole job
// costs, WAL and dead rows with it: `cost.test.ts`.

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { fill, type Hand, held, type Row, register } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
let session: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('plan')
  hand = await register(db)
  session = await db.session()
  // Never analysed, unless a test does it.
  for (const table of ['waiting', 'running', 'dedupe']) {
    await db.sql(`alter table rowlock.${table} set (autovacuum_enabled = off)`)
  }
})
afterAll(() => db.drop())

/** What a statement cost, nested ones included. */
async function cost(text: string, values: unknown[] = []) {
  const { rows } = await session.query(`explain (analyze, buffers, wal, format json) ${text}`, values)
  const top = rows[0]['QUERY PLAN'][0].Plan
  return {
    buffers: top['Shared Hit Blocks'] + top['Shared Read Blocks'],
  }
}

const CLAIM = 'select rowlock.claim($1, $2)'
const wants = (more: Record<string, unknown> = {}) =>
  JSON.stringify([{ queue: 'default', limit: 10, kinds: ['k'], ...more }])

/** Blocks that one claim reads; nothing stays changed. */
async function buffersOfClaim(more: Record<string, unknown> = {}): Promise<number> {
  await session.query('begin')
  await session.query(CLAIM, [hand.id, wants(more)])
  await session.query('rollback')
  await session.query('begin')
  const { buffers } = await cost(CLAIM, [hand.id, wants(more)])
  await session.query('rollback')
  return buffers
}

describe('blocks read by a claim', () => {
  test('of an empty queue: nine, and two for each further kind, whatever priorities there are', async () => {
    expect(await buffersOfClaim()).toBeLessThanOrEqual(10)
    const kinds = Array.from({ length: 20 }, (_, n) => `k${n}`)
    expect(await buffersOfClaim({ kinds })).toBeLessThanOrEqual(50)
  })

  test('are the same whatever stands in other lines: 100,000 older foreign jobs, 50,000 scheduled ones', async () => {
    await fill(db, 200)
    const alone = await buffersOfClaim()
    await fill(db, 100_000, {
      kind: `'foreign' || n % 5`,
      available_at: `clock_timestamp() - interval '1 day'`,
    })
    await fill(db, 50_000, { priority: '10', available_at: `clock_timestamp() + interval '1 day'` })
    const crowded = await buffersOfClaim()
    expect(alone).toBeLessThanOrEqual(90)
    // The index is one level higher.
    expect(crowded).toBeLessThanOrEqual(alone + 10)

    await db.sql('analyze rowlock.waiting')
    expect(await buffersOfClaim()).toBeLessThanOrEqual(alone + 10)
  })

  test('grow with the jobs taken, and not with those left behind', async () => {
    const few = await buffersOfClaim({ limit: 10 })
    const many = await buffersOfClaim({ limit: 110 })
    expect((many - few) / 100).toBeLessThanOrEqual(7.3)
  })
})

describe('plans', () => {
  /** The plans of the statements inside of one call. */
  async function plansOf(text: string, values: unknown[]): Promise<{ query: string; nodes: Row[] }[]> {
    const plans: { query: string; nodes: Row[] }[] = []
    const own = await db.session()
    await own.query(`load 'auto_explain'`)
    await own.query(`set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
                     set auto_explain.log_format = 'json'; set auto_explain.log_level = 'notice';
                     set auto_explain.log_analyze = on; set auto_explain.log_timing = off`)
    own.on('notice', ({ message = '' }) => {
      const json = message.slice(message.indexOf('{'))
      if (!message.includes('plan:') || json === '') return
      const { 'Query Text': query, Plan } = JSON.parse(json)
      const nodes: Row[] = []
      const walk = (node: Row) => {
        nodes.push(node)
        for (const child of node.Plans ?? []) walk(child)
      }
      walk(Plan)
      plans.push({ query, nodes })
    })
    await own.query('begin')
    await own.query(text, values)
    await own.query('rollback')
    await own.end()
    return plans
  }

  const nodesOn = (plans: { nodes: Row[] }[], relation: string) =>
    plans.flatMap(({ nodes }) => nodes).filter((node) => node['Relation Name'] === relation)

  test('of a claim: heads and rows come from the dispatch index in its order and are found by place', async () => {
    const plans = await plansOf(CLAIM, [hand.id, wants({ kinds: ['k', 'foreign1'] })])
    const locking = plans.filter(({ query }) => query.includes('for update skip locked'))
    expect(locking.length).toBeGreaterThan(0)
    for (const { nodes } of locking) {
      expect(nodes.map((node) => node['Node Type'])).not.toContain('Sort')
      expect(nodes.find((node) => node['Node Type'] === 'Index Scan')).toMatchObject({
        'Index Name': 'waiting_dispatch',
      })
    }
    const kinds = nodesOn(plans, 'waiting').map((node) =>
      [node['Node Type'], node['Index Name']].join(' ').trim(),
    )
    expect([...new Set(kinds)].sort()).toEqual([
      'Index Only Scan waiting_dispatch',
      'Index Only Scan waiting_suspects',
      'Index Scan waiting_dispatch',
      'ModifyTable',
      'Tid Scan',
    ])
  })

  test('of a claim with a frontier: each line finds its place by its kind, not by comparing it with all', async () => {
    const kinds = Array.from({ length: 40 }, (_, n) => `k${n}`)
    const from = Object.fromEntries(kinds.map((kind) => [kind, [{ priority: 0, at: '2026-01-01', id: '1' }]]))
    const plans = await plansOf(CLAIM, [hand.id, wants({ kinds, from })])
    const heads = plans.find(({ query }) => query.includes('cross join lateral'))!
    const places = heads.nodes.filter((node) => node['Function Name'] === 'jsonb_to_recordset')
    expect(places).toHaveLength(1)
    // Once for each line, and once more to see that there is none behind it.
    expect(places[0]!['Actual Loops']).toBeLessThanOrEqual(2 * kinds.length)
    expect(places[0]!['Actual Rows']).toBeLessThanOrEqual(1)
  })

  test.each([
    ['complete', { result: 1 }],
    ['fail', { cause: 'Error', error: {} }],
    ['snooze', { after_ms: 5 }],
    ['start', {}],
  ])('of %s: no table is read through', async (name, more) => {
    const { jobs } = await hand.claim({ limit: 50, queue: 'default' })
    const pairs = jobs.map(({ id, claim_id }) => ({ id, claim_id, ...more }))
    const plans = await plansOf(`select rowlock.${name}($1)`, [JSON.stringify(pairs)])
    const found = nodesOn(plans, 'running')
    expect(found.length).toBeGreaterThan(0)
    expect(found.map((node) => node['Node Type'])).not.toContain('Seq Scan')
  })

  // A plan that was made while few jobs ran is kept, and serves thousands.
  test.each([0, 2, 5])(
    'of complete: each job is looked up by its id, planned while %i ran',
    async (running) => {
      await db.sql('truncate rowlock.running')
      await fill(db, 60)
      if (running > 0) await hand.claim({ limit: running, queue: 'default' })
      await db.sql('vacuum rowlock.running')
      const { jobs } = await hand.claim({ limit: 50, queue: 'default' })
      const { claim_id } = jobs[0]!
      const ids = jobs.slice(0, 40).map(({ id }) => id)
      const given = [
        { claim_id, queue: 'default', ids: `{${ids.join()}}` },
        ...jobs.slice(40).map((job) => held(job)),
      ]
      const found = nodesOn(await plansOf('select rowlock.complete($1)', [JSON.stringify(given)]), 'running')
      const scans = found.filter((node) => node['Node Type'] !== 'ModifyTable')
      expect(scans.map((node) => node['Index Cond'] ?? node['Node Type'])).toEqual([
        expect.stringContaining('id = ANY'),
      ])
    },
  )

  test('of verbs by id and by key: no table is read through', async () => {
    const id = await db.value('select min(id) from rowlock.waiting')
    const key = { kind: 'k', input: {}, dedupe_key: 'one' }
    const calls: [string, unknown[]][] = [
      ['select rowlock.cancel($1)', [id]],
      ['select rowlock.run_now($1)', [id]],
      ['select rowlock.prioritize($1, 3)', [id]],
      ['select rowlock.expire()', []],
      ['select rowlock.enqueue_many($1)', [JSON.stringify([key, { ...key, dedupe_key: 'two' }])]],
    ]
    for (const [text, values] of calls) {
      const plans = await plansOf(text, values)
      const nodes = [...nodesOn(plans, 'waiting'), ...nodesOn(plans, 'dedupe')]
      expect([text, nodes.map((node) => node['Node Type']).filter((type) => type === 'Seq Scan')]).toEqual([
        text,
        [],
      ])
    }
  })
})
