// While somebody keeps an old snapshot, what dies stays in the index; claims must not wade through all of it. Counted
// in blocks, never in time.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fill, type Hand, held, register, verb } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let hand: Hand
let session: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('old snapshot')
  hand = await register(db)
  session = await db.session()
  // What is counted is what these tests do: an autovacuum would tidy, and an analyze keep a snapshot of its own.
  for (const table of ['waiting', 'running'])
    await db.sql(`alter table rowlock.${table} set (autovacuum_enabled = off)`)
})
afterAll(() => db.drop())

interface Place {
  readonly priority: number
  readonly at: string
  readonly id: string
}

/** Blocks that one claim reads; nothing stays changed. */
async function blocks(k: readonly Place[] = []): Promise<number> {
  const wants = JSON.stringify([{ queue: 'default', limit: 10, kinds: ['k'], from: { k } }])
  await session.query('begin')
  const { rows } = await session.query(
    'explain (analyze, buffers, format json) select rowlock.claim($1, $2)',
    [hand.id, wants],
  )
  await session.query('rollback')
  const { Plan } = rows[0]['QUERY PLAN'][0]
  return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
}

test('a claim from the frontier reads what it would without one; a full look does after a vacuum', async () => {
  await fill(db, 200)
  await blocks()
  const clean = await blocks()
  await db.sql('delete from rowlock.waiting')
  const old = await db.session()
  await old.query('begin isolation level repeatable read')
  await old.query('select count(*) from rowlock.waiting')
  await fill(db, 40_000)
  let last: Place | undefined
  for (let round = 0; round < 36; round++) {
    const { jobs } = await hand.claim({ limit: 1_000 })
    const [row] = await db.sql(
      `select id::text, available_at from rowlock.running order by rowlock.running.available_at desc, id desc limit 1`,
    )
    last = { priority: 0, at: row.available_at.toISOString(), id: row.id }
    await verb(
      db,
      'complete',
      jobs.map((job) => held(job)),
    )
  }
  const wading = await blocks()
  const standing = await blocks([last!])
  expect(wading).toBeGreaterThan(clean * 5)
  expect(standing).toBeLessThan(clean * 3)
  // Who holds it is no secret: the health query of the docs names the session.
  const [holder] = await db.sql(
    `select pid from pg_stat_activity where backend_xmin is not null and datname = current_database()
      and pid <> pg_backend_pid() and backend_type = 'client backend' order by age(backend_xmin) desc limit 1`,
  )
  expect(holder.pid).toBe((old as unknown as { processID: number }).processID)
  await old.query('rollback')
  // Whoever else reads this database at the moment holds up a vacuum too.
  await until('a vacuum has tidied', async () => {
    await db.sql('vacuum rowlock.waiting')
    return (await blocks()) < clean * 2
  })
})
