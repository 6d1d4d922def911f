// What the bench does by hand with SQL verbs, as a worker does it by TypeScript: it must read what claims answer today,
// or a scenario measures a queue on which nothing ends.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Hand } from '../../bench/ours/hand.ts'
import { loopInServer } from '../../bench/ours/loop-in-server.ts'
import { fill } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('bench_by_hand')
})
afterAll(() => db.drop())

const counts = () =>
  db.sql(`select (select count(*)::integer from rowlock.waiting) as waiting,
                 (select count(*)::integer from rowlock.running) as running,
                 (select count(*)::integer from rowlock.finished) as finished`)

test('a worker by hand holds what it claimed, alike or not, and ends it', async () => {
  await fill(db, 5)
  await fill(db, 1, { tenant_id: `'acme'` })
  const hand = await Hand.on(db.direct)
  const jobs = await hand.claim({ limit: 10 })
  expect(jobs).toHaveLength(6)
  await hand.complete(jobs)
  expect(await counts()).toEqual([{ waiting: 0, running: 0, finished: 6 }])

  await fill(db, 1)
  const [job] = await hand.claim()
  await hand.fail(job!)
  expect(await hand.claim()).toEqual([{ id: job!.id, claim_id: expect.not.stringMatching(job!.claim_id) }])
  await hand.end()
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.finished')
})

test('the loop in the server runs all jobs of a kind to their end', async () => {
  await fill(db, 20)
  await fill(db, 5, { tenant_id: `'acme'` })
  const workerId = randomUUID()
  await db.sql(`select rowlock.register($1, interval '1 hour', '{}')`, [workerId])
  await db.sql(loopInServer(workerId, 10, 'k'))
  expect(await counts()).toEqual([{ waiting: 0, running: 0, finished: 25 }])
})
