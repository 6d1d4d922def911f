// SIGKILL at every point: before each statement is sent, before it is answered, before its answer is heard of, and
// inside handlers. After each a healthy worker drains, and the books balance.
//
// ROWLOCK_LONG=1: at all points. Otherwise at some, chosen by ROWLOCK_TEST_SEED.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ERRANDS, type Errand, MOMENTS, nameOf, type Point } from '../../faults/kill/points.ts'
import { Trial } from '../../faults/kill/trial.ts'
import { installAudit, openStage, type Stage } from '../../faults/stage.ts'
import { random, seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'
const SOME: Readonly<Record<Errand, number>> = { produce: 6, work: 12, reap: 6 }
/** Two victims at a time are what two cores can take. */
const AT_ONCE = 2

let dice: () => number
beforeAll(() => {
  dice = random(seedOf('kill points'))
})

let db: TestRowlock
let stage: Stage
beforeEach(async () => {
  db = await rowlockDatabase('kill_points')
  stage = openStage(db.url)
  await installAudit(stage)
})
afterEach(async () => {
  await stage.close()
  await db.drop()
})

/** The first three times of each statement, at each of its moments; each moment of a handler once. */
function pointsOf(counts: readonly (readonly [string, number])[]): Point[] {
  return counts.flatMap(([label, count]) => {
    const times = Array.from({ length: Math.min(count, 3) }, (_, n) => n + 1)
    return label.startsWith('handler')
      ? [{ label, nth: 1, moment: 'before' as const }]
      : times.flatMap((nth) => MOMENTS.map((moment) => ({ label, nth, moment })))
  })
}

function some<T>(list: readonly T[], count: number): T[] {
  const left = [...list]
  const chosen: T[] = []
  while (chosen.length < count && left.length > 0)
    chosen.push(...left.splice(Math.floor(dice() * left.length), 1))
  return chosen
}

describe('killed at any point nothing is lost, doubled or stuck', () => {
  test.each(ERRANDS)('%s', { timeout: 1_200_000 }, async (errand) => {
    const trial = new Trial(stage, db.url)
    const calm = await trial.send(errand)
    expect(calm.wasKilled).toBe(false)
    const all = pointsOf(calm.counts)
    const points = IS_LONG ? all : some(all, SOME[errand])
    const queue = [...points]
    const killed: string[] = []
    const send = async () => {
      for (let point = queue.shift(); point !== undefined; point = queue.shift()) {
        if ((await trial.send(errand, point)).wasKilled) killed.push(nameOf(point))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, send))
    console.log(`${errand}: ${killed.length} of ${all.length} points: ${IS_LONG ? 'all' : killed.join('; ')}`)
    // A point of a loop that the victim does not come to a second time lets it live.
    expect(killed.length).toBeGreaterThan(points.length / 2)
    expect(await trial.judge()).toEqual([])
  })
})
