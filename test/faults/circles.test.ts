// The count of deadlocks that the judge goes by: verbs that lock in any order make a circle, and it is counted.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { readRest } from '../../faults/drain.ts'
import { enqueueMany, untilBlocked } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import { twinOf } from './twin.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('circles')
})
afterAll(() => db.drop())

test('verbs that wait for each other in a circle are counted', async () => {
  const deadlocks = async () => (await readRest(db, 0)).deadlocks
  const meet = async () => {
    const [first, second] = [await db.session(), await db.session()]
    await first.query('begin')
    await enqueueMany(db, [{ dedupe_key: 'a' }], first)
    const both = enqueueMany(db, [{ dedupe_key: 'c' }, { dedupe_key: 'a' }], second).catch(() => {})
    await untilBlocked(db)
    await enqueueMany(db, [{ dedupe_key: 'c' }], first).catch(() => {})
    await first.query('commit').catch(() => {})
    await both
    await db.sql('truncate rowlock.waiting, rowlock.dedupe')
  }
  const before = await deadlocks()
  await meet()
  expect(await deadlocks()).toBe(before)
  const [sound, broken] = await twinOf(db, 'try_keys', 'order by f.queue, f.key', 'order by f.id')
  await db.sql(broken)
  try {
    await meet()
    await until('it is counted', async () => (await deadlocks()) > before)
  } finally {
    await db.sql(sound)
  }
})
