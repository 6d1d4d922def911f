// What a claim tells of a job, field by field: what few jobs have is left out where a job has nothing of it.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ClaimedJob, claim } from '../../src/engine/claim.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { fill, type Hand, random, register, seedOf } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('claim_row')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.worker')
  hand = await register(db)
})

const PLAIN = {
  priority: 0,
  attempt: 1,
  failures: 0,
  input: {},
  isLarge: false,
  timeoutMs: null,
  maxAttempts: null,
  tenantId: null,
  dedupeKey: null,
  idempotencyKey: null,
  metadata: null,
  retriedFrom: null,
  losses: 0,
  expiresAt: null,
}

const claimed = async (): Promise<ClaimedJob> => {
  const wants = [{ queue: 'default', limit: 10, kinds: ['k'] }]
  const { jobs } = await claim(db.database, hand.id, wants, null, 60_000)
  expect(jobs).toHaveLength(1)
  return jobs[0]!
}

test.each([
  ['nothing', {}, {}],
  ['a priority', { priority: '3' }, { priority: 3 }],
  ['attempts', { attempt: '4' }, { attempt: 5 }],
  ['failures', { failures: '4' }, { failures: 4 }],
  ['an input elsewhere', { input: 'null' }, { input: undefined, isLarge: true }],
  ['a timeout', { timeout: "interval '90 s'" }, { timeoutMs: 90_000 }],
  ['a most of attempts', { max_attempts: '7' }, { maxAttempts: 7 }],
  ['a tenant', { tenant_id: "'acme'" }, { tenantId: 'acme' }],
  ['a dedupe key', { dedupe_key: "'one'" }, { dedupeKey: 'one' }],
  ['an idempotency key', { idempotency_key: "'two'" }, { idempotencyKey: 'two' }],
  ['metadata', { metadata: `'{"trace": "abc"}'` }, { metadata: { trace: 'abc' } }],
  ['a job that it retries', { retried_from: '9007199254740993' }, { retriedFrom: '9007199254740993' }],
  ['a loss', { losses: '1' }, { losses: 1 }],
  ['losses of a suspect', { losses: '3' }, { losses: 3 }],
  ['an end', { expires_at: "now() + interval '1 h'" }, { expiresAt: expect.any(Number) }],
  ['an end that never comes', { expires_at: "'infinity'" }, {}],
] as [string, Record<string, string>, Partial<ClaimedJob>][])(
  'a claim tells of a job that has %s that and no more',
  async (_, columns, told) => {
    await fill(db, 1, columns)
    expect(await claimed()).toMatchObject({ ...PLAIN, ...told })
  },
)

test('a caller that does not say so is answered row by row, each with all fields', async () => {
  await fill(db, 3)
  const wants = [{ queue: 'default', limit: 10, kinds: ['k'] }]
  const reply = await db.value('select rowlock.claim($1, $2)', [hand.id, JSON.stringify(wants)])
  expect(reply.alike).toEqual([])
  expect(reply.jobs.map((row: unknown[]) => row.length)).toEqual([19, 19, 19])
})

test('what a frontier names hides nothing: as many jobs are found as a naive look finds', async () => {
  const next = random(seedOf('frontier'))
  const below = (n: number) => Math.floor(next() * n)
  for (let round = 0; round < 60; round++) {
    await db.sql('truncate rowlock.waiting, rowlock.running')
    const rows = Array.from({ length: below(20) }, (_, n) => ({
      id: n + 1,
      kind: `k${below(3)}`,
      priority: below(5) * 5 - 10,
      at: below(6),
    }))
    for (const { id, kind, priority, at } of rows) {
      const columns = { id: String(id), kind: `'${kind}'`, priority: String(priority) }
      await fill(db, 1, { ...columns, available_at: `timestamptz '2026-01-01' + ${at} * interval '1 s'` })
    }
    const from: Record<string, { priority: number; at: string; id: string }[]> = {}
    for (let n = below(8); n > 0; n--) {
      const [kind, priority] = [`k${below(3)}`, below(5) * 5 - 10]
      if (from[kind]?.some((place) => place.priority === priority)) continue
      const at = new Date(Date.UTC(2026, 0, 1, 0, 0, below(6))).toISOString()
      from[kind] = [...(from[kind] ?? []), { priority, at, id: String(below(20)) }]
    }
    const expected = rows.filter(({ id, kind, priority, at }) => {
      const place = from[kind]?.find((one) => one.priority === priority)
      if (place === undefined) return true
      const seconds = new Date(place.at).getUTCSeconds()
      return at > seconds || (at === seconds && id >= Number(place.id))
    })
    const { ids } = await hand.claim({ kinds: ['k0', 'k1', 'k2'], from })
    expect([...ids].sort()).toEqual(expected.map(({ id }) => String(id)).sort())
  }
})

test('a claim takes all that it locks, though others write to its rows meanwhile', async () => {
  const count = 3_000
  await fill(db, count, { id: 'n' })
  const next = random(seedOf('claim-row'))
  let isOpen = true
  const writers = [1, 2].map(async () => {
    const session = await db.session()
    // A new version of the row, at the same place of its line.
    while (isOpen) {
      const id = 1 + Math.floor(next() * 1_000)
      await session.query('update rowlock.waiting set failures = 1 - failures where id = $1', [id])
    }
  })
  const session = await db.session()
  const counts: number[] = []
  try {
    for (let i = 0; i < 30; i++) {
      await session.query('begin')
      counts.push((await hand.claim({ limit: 1_000 }, session)).jobs.length)
      await session.query('rollback')
    }
  } finally {
    isOpen = false
    await session.query('rollback')
    await Promise.all(writers)
  }
  expect(counts).toEqual(counts.map(() => 1_000))
})
