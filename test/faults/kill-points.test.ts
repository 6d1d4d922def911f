// SIGKILL at every point: before each statement is sent, before it is answered, before its answer is heard of, and
// inside handlers. After each a healthy worker drains, and the books balance.
//
// ROWLOCK_LONG=1: at all points. Otherwise at some, chosen by ROWLOCK_TEST_SEED.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../../faults/cluster.ts'
import { ERRANDS, type Errand, MOMENTS, nameOf, type Point } from '../../faults/kill/points.ts'
import { Trial } from '../../faults/kill/trial.ts'
import { installAudit, openStage, type Stage } from '../../faults/stage.ts'
import { Database } from '../../src/engine/database.ts'
import { migrate } from '../../src/engine/migrate.ts'
import { random, seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'
const SOME: Readonly<Record<Errand, number>> = { produce: 6, work: 12, reap: 6 }
/** Two victims at a time are what two cores can take. */
const AT_ONCE = 2
/** A crash and its recovery take seconds. */
const SOME_CRASHES = 8

let dice: () => number
beforeAll(() => {
  dice = random(seedOf('kill points'))
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

/** Send victims to these points, in this order, until so many were reached; the ones that were. */
async function sendAll(
  trial: Trial,
  errand: Errand,
  points: readonly Point[],
  count: number,
  atOnce: number,
): Promise<string[]> {
  const queue = [...points]
  const reached: string[] = []
  let sent = 0
  const send = async () => {
    while (reached.length < count && sent < 3 * count) {
      const point = queue.shift()
      if (point === undefined) return
      sent++
      if ((await trial.send(errand, point)).wasKilled) reached.push(nameOf(point))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, send))
  // A point of a loop that the victim does not come to a second time lets it live: of all, not so many are such.
  expect(reached.length).toBeGreaterThan(Math.min(count, points.length) / 2)
  return reached
}

describe('killed at any point nothing is lost, doubled or stuck', () => {
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

  test.each(ERRANDS)('%s', { timeout: 1_200_000 }, async (errand) => {
    const trial = new Trial(stage, db.url)
    const calm = await trial.send(errand)
    expect(calm.wasKilled).toBe(false)
    const all = pointsOf(calm.counts)
    const count = IS_LONG ? all.length : SOME[errand]
    const reached = await sendAll(trial, errand, some(all, all.length), count, AT_ONCE)
    console.log(
      `${errand}: ${reached.length} of ${all.length} points: ${IS_LONG ? 'all' : reached.join('; ')}`,
    )
    expect(await trial.judge()).toEqual([])
  })
})

describe.runIf(IS_LONG)('a server that is killed at any point loses nothing that it acknowledged', () => {
  let cluster: Cluster
  let stage: Stage
  beforeEach(async () => {
    cluster = await startCluster()
    const database = new Database({ connectionString: cluster.url })
    await migrate(database)
    await database.close()
    stage = openStage(cluster.url)
    await installAudit(stage)
  })
  afterEach(async () => {
    await stage.close()
    await cluster.stop()
  })

  test.each(ERRANDS)('%s', { timeout: 1_200_000 }, async (errand) => {
    const trial = new Trial(stage, cluster.url, () => cluster.restart('immediate'))
    const all = pointsOf((await trial.send(errand)).counts)
    const reached = await sendAll(trial, errand, some(all, all.length), SOME_CRASHES, 1)
    console.log(`${errand}: the server killed at ${reached.join('; ')}`)
    expect(await trial.judge()).toEqual([])
  })
})
