// What a claim costs beside millions of rows, at the full size: statistics that are of another time, jobs of next year,
// and a backlog of a million. ROWLOCK_LONG=1 (`./check --long`); counted in blocks, and at the end in time too, with
// bounds so wide that only another plan breaks them.

import type pg from 'pg'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { fill, type Hand, held, register, verb, type Want } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { IS_LONG } from '../support/long.ts'

const MILLION = 1_000_000
const LIMIT_MS = 50
const BATCH = 10

let db: TestRowlock
let hand: Hand
let session: pg.Client
const table: string[] = []

beforeEach(async () => {
  await db?.drop()
  db = await rowlockDatabase('claim cost')
  hand = await register(db, '10 hours')
  session = await db.session()
  for (const name of ['waiting', 'running', 'dedupe', 'worker']) {
    await db.sql(`alter table rowlock.${name} set (autovacuum_enabled = off)`)
  }
}, 300_000)
afterAll(async () => {
  if (table.length > 0) console.log(table.join('\n'))
  await db?.drop()
}, 300_000)

const wants = JSON.stringify([{ queue: 'default', limit: BATCH, kinds: ['k'] }])

/** Blocks that this reads; nothing stays changed. */
async function blocks(text: string, values: unknown[] = []): Promise<number> {
  await session.query('begin')
  await session.query(text, values)
  await session.query('rollback')
  await session.query('begin')
  const { rows } = await session.query(`explain (analyze, buffers, format json) ${text}`, values)
  await session.query('rollback')
  const { Plan } = rows[0]['QUERY PLAN'][0]
  return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
}
const blocksOfClaim = () => blocks('select rowlock.claim($1, $2)', [hand.id, wants])

/**
 * Claim and end so many jobs. `on`: from where the last claim stood, as a worker does whose full look was slow. Answers
 * how long claims took.
 */
async function work(jobs: number, { on = false } = {}): Promise<{ p95: number; perSecond: number }> {
  const times: number[] = []
  let from: NonNullable<Want['from']> = {}
  const began = performance.now()
  for (let done = 0; done < jobs; done += BATCH) {
    const before = performance.now()
    const claimed = await hand.claim({ limit: BATCH, from }, session)
    times.push(performance.now() - before)
    expect(claimed.jobs).toHaveLength(BATCH)
    if (on) {
      const [last] = await db.sql(
        `select r.id::text, r.available_at from rowlock.running r order by r.available_at desc, r.id desc limit 1`,
      )
      from = { k: [{ priority: 0, at: last.available_at.toISOString(), id: last.id }] }
    }
    await verb(
      db,
      'complete',
      claimed.jobs.map((job) => held(job)),
      session,
    )
  }
  const seconds = (performance.now() - began) / 1_000
  return {
    p95: times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)]!,
    perSecond: Math.round(jobs / seconds),
  }
}

/** No table of the hot path is read through, and nothing is sorted, by any statement of a claim. */
async function expectPlans(): Promise<void> {
  const own = await db.session()
  const bad: string[] = []
  let plans = 0
  await own.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0;
    set auto_explain.log_nested_statements = on; set auto_explain.log_level = 'notice'`)
  own.on('notice', ({ message = '' }) => {
    if (!message.includes('plan:')) return
    plans++
    if (/Seq Scan on (waiting|running|worker|finished)/.test(message)) bad.push(message)
    if (/Sort/.test(message) && /for update skip locked/.test(message)) bad.push(message)
  })
  await own.query('begin')
  await own.query('select rowlock.claim($1, $2)', [hand.id, wants])
  await own.query('rollback')
  await own.end()
  expect(plans).toBeGreaterThan(3)
  expect(bad).toEqual([])
}

const finish = (count: number) =>
  db.sql(`insert into rowlock.finished (
      id, finished_at, available_at, enqueued_at, attempt, priority, failures, retention_days, state, queue, kind,
      input)
    select nextval('rowlock.job_id'), now(), now(), now(), 1, 0, 0, 7, 'done', 'default', 'k', '{}'
      from generate_series(1, ${count})`)

describe.runIf(IS_LONG)('statistics of another time', { timeout: 900_000 }, () => {
  test('a million finished and none waiting; then 50,000 wait', async () => {
    await finish(MILLION)
    await db.sql('analyze')
    await fill(db, 50_000)
    await expectPlans()
    const { p95, perSecond } = await work(10_000)
    table.push(`analysed empty, then 50,000: p95 ${p95.toFixed(1)} ms, ${perSecond} jobs/s`)
    expect(p95).toBeLessThan(LIMIT_MS)
  })

  test('a million waiting; then they are gone, and 50,000 others wait', async () => {
    await fill(db, MILLION)
    await db.sql('analyze')
    await expectPlans()
    const full = await work(10_000)
    table.push(`analysed with a million, which wait: p95 ${full.p95.toFixed(1)} ms`)
    expect(full.p95).toBeLessThan(LIMIT_MS)
    await db.sql('delete from rowlock.waiting')
    await finish(MILLION)
    await fill(db, 50_000)
    await expectPlans()
    // A full look wades through all that died, until a vacuum; a worker that notices goes on from where it stood.
    const { p95, perSecond } = await work(10_000, { on: true })
    table.push(`analysed with a million, then 50,000: p95 ${p95.toFixed(1)} ms, ${perSecond} jobs/s`)
    expect(p95).toBeLessThan(LIMIT_MS)
    await db.sql('vacuum rowlock.waiting')
    expect((await work(10_000)).p95).toBeLessThan(LIMIT_MS)
  })

  test('none finished and none waiting; then a million wait', async () => {
    await db.sql('analyze')
    await fill(db, MILLION)
    await expectPlans()
    const { p95 } = await work(10_000)
    table.push(`analysed empty, then a million: p95 ${p95.toFixed(1)} ms`)
    expect(p95).toBeLessThan(LIMIT_MS)
  })
})

describe.runIf(IS_LONG)('what else there is', { timeout: 900_000 }, () => {
  test('a million jobs of next year and 100,000 finished ones cost claims and upkeep nothing', async () => {
    await fill(db, 100_000)
    const calls = ['sweep()', 'expire()', 'reap()', 'unhandled()']
    const measure = async () => {
      const found: Record<string, number> = { claim: await blocksOfClaim() }
      for (const call of calls) found[call] = await blocks(`select rowlock.${call}`)
      return found
    }
    const alone = await measure()
    await fill(db, MILLION, { available_at: `clock_timestamp() + interval '1 year'` })
    await fill(db, 1_000, {
      available_at: `clock_timestamp() + interval '1 year'`,
      expires_at: `clock_timestamp() + interval '2 years'`,
    })
    await finish(100_000)
    for (const when of ['never analysed', 'analysed']) {
      if (when === 'analysed') await db.sql('analyze')
      const crowded = await measure()
      table.push(`${when}: ${JSON.stringify(alone)} alone, ${JSON.stringify(crowded)} beside a million`)
      for (const [what, count] of Object.entries(crowded)) {
        expect([what, count]).toEqual([what, expect.toSatisfy((n: number) => n <= alone[what]! * 1.5 + 30)])
      }
    }
    const { p95 } = await work(10_000)
    expect(p95).toBeLessThan(LIMIT_MS)
  })

  test('a backlog of 10, of 10,000 and of a million costs a claim the same', async () => {
    const costs: number[] = []
    const speeds: number[] = []
    for (const backlog of [10, 10_000, MILLION]) {
      await db.sql('truncate rowlock.waiting, rowlock.running')
      await fill(db, backlog)
      costs.push(await blocksOfClaim())
      if (backlog > 10) speeds.push((await work(5_000)).perSecond)
    }
    table.push(`blocks of a claim above 10, 10,000, a million: ${costs}; jobs/s ${speeds}`)
    expect(Math.max(...costs)).toBeLessThan(costs[0]! * 2)
  })
})
