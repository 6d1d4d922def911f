// What each feature adds to the life of a job, from the enqueue to history, counted: the table of docs/performance.md.

import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, register } from './by-hand.ts'
import { type Counted, counted, settled } from './counted.ts'

let db: TestRowlock
let hand: Hand
let session: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('features')
  hand = await register(db)
  session = await db.session()
  for (const table of ['waiting', 'running', 'dedupe', 'payload']) {
    await db.sql(`alter table rowlock.${table} set (autovacuum_enabled = off)`)
  }
})
afterAll(() => db.drop())

/** What is other than in a plain job. */
interface Feature {
  readonly job?: (n: number) => object
  readonly input?: () => unknown
  readonly result?: unknown
  readonly retentionDays?: number
  readonly fails?: boolean
}

const BATCH = 250
/** No key is the same as one that died before it. */
let round = 0
const WANTS = JSON.stringify([{ queue: 'email', limit: BATCH, kinds: ['send-email'], alike: true }])
const FAILED = {
  outcome: 'failed',
  cause: 'Error',
  error: { name: 'Error', message: 'went wrong' },
  after_ms: 0,
}
/** Text that does not compress. */
const noise = (bytes: number): string => randomBytes(bytes).toString('base64').slice(0, bytes)

/** One batch from the enqueue to its end; what each statement cost. */
async function live({ job, input, result, fails }: Feature): Promise<Record<string, Counted>> {
  round++
  const jobs = Array.from({ length: BATCH }, (_, n) => ({
    kind: 'send-email',
    queue: 'email',
    input: input?.() ?? { to: `user${n}@example.com`, template: 'welcome' },
    ...job?.(n),
  }))
  const isKeyed = jobs.some((each) => 'dedupe_key' in each)
  const isLarge = jobs.some((each) => JSON.stringify(each.input).length > 4000)
  const parts = [
    await counted(session, 'select rowlock.store($1, $2, $3)', [JSON.stringify(jobs), isKeyed, isLarge]),
  ]
  const claim = async () => {
    parts.push(await counted(session, 'select rowlock.claim($1, $2)', [hand.id, WANTS]))
    const { rows } = await session.query('select id::text, claim_id from rowlock.running order by id')
    expect(rows).toHaveLength(BATCH)
    return rows
  }
  const finish = async (outcomes: object) => {
    parts.push(await counted(session, 'select rowlock.finish($1)', [JSON.stringify(outcomes)]))
  }
  if (fails) await finish({ fail: (await claim()).map((row) => ({ ...row, ...FAILED })) })
  const rows = await claim()
  // As a worker ends them.
  const together = {
    claim_id: rows[0].claim_id,
    queue: 'email',
    ids: `{${rows.map(({ id }) => id).join()}}`,
    ran_each: `{${rows.map(() => 12.5).join()}}`,
    ...(result !== undefined && { results: rows.map(() => result) }),
  }
  await finish({ complete: [together] })
  return Object.fromEntries(parts.map((part, n) => [String(n), part]))
}

/** The whole life of one job. */
async function life(feature: Feature): Promise<Counted> {
  await db.sql(`select rowlock.set_queue('email', $1)`, [{ retention_days: feature.retentionDays ?? 7 }])
  const parts = Object.values(await settled(() => live(feature)))
  const of = (figure: keyof Counted): number => parts.reduce((sum, each) => sum + each[figure], 0) / BATCH
  return { blocks: of('blocks'), walBytes: of('walBytes') }
}

let plain: Counted
beforeAll(async () => {
  plain = await life({})
})

test('a plain job reads 18 blocks, two more before PostgreSQL 17, and logs 1,067 bytes', async () => {
  const version = Number(await db.value('show server_version_num'))
  expect(plain.blocks).toBeLessThanOrEqual(version < 170_000 ? 20.8 : 18.8)
  expect(plain.walBytes).toBeLessThanOrEqual(1_085)
})

test.each<readonly [name: string, feature: Feature, blocks: number, walBytes: number]>([
  ['no history', { retentionDays: 0 }, -2.8, -270],
  ['a tenant', { job: () => ({ tenant_id: 'acme' }) }, 0.4, 24],
  ['a timeout', { job: () => ({ timeout: '1 minute' }) }, 0.5, 58],
  ['a result of 25 bytes', { result: { ok: true, id: 12345 } }, 0.5, 45],
  ['metadata of 45 bytes', { job: () => ({ metadata: { trace: noise(32) } }) }, 0.7, 162],
  ['an end', { job: () => ({ expires_in: '1 hour' }) }, 1.6, 92],
  ['an idempotency key', { job: (n) => ({ idempotency_key: `charge ${round} ${n}` }) }, 2.7, 148],
  ['a dedupe key', { job: (n) => ({ dedupe_key: `user ${round} ${n}` }) }, 11, 440],
  ['an attempt that failed', { fails: true }, 28.5, 1_060],
  // Above 2 kB PostgreSQL keeps a value beside its row, and each move writes it anew; above 4 kB we do, and none does.
  ['an input of 3 kB', { input: () => ({ text: noise(3_000) }) }, 47.5, 10_150],
  ['an input of 5 kB', { input: () => ({ text: noise(5_000) }) }, 18.6, 5_500],
])('%s adds no more than it did', async (_, feature, blocks, walBytes) => {
  const found = await life(feature)
  expect(found.blocks - plain.blocks).toBeLessThanOrEqual(blocks)
  expect(found.walBytes - plain.walBytes).toBeLessThanOrEqual(walBytes)
})
