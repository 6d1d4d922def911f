// SIGKILL at every point: before each statement is sent, before it is answered, before its answer is heard of, and
// inside handlers; then the same of the server. After all of them a healthy worker drains, and the books balance.
//
// ROWLOCK_LONG=1: at all points. Otherwise once at each statement that matters, and at some others, as
// ROWLOCK_TEST_SEED says.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  ERRANDS,
  type Errand,
  nameOf,
  OF_THE_ELDEST,
  type Point,
  pointsOf,
  REQUIRED,
  WAITS_FOR,
} from '../../faults/kill/points.ts'
import { type MortalServer, startMortal } from '../../faults/kill/server.ts'
import { Trial } from '../../faults/kill/trial.ts'
import { installAudit, openStage, type Stage } from '../../faults/stage.ts'
import { Database } from '../../src/engine/database.ts'
import { migrate } from '../../src/engine/migrate.ts'
import { random, seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'
/** Beside one of each statement that matters. */
const SOME_OTHERS = 3
/** Two victims at a time are what two cores can take; two that reap would take each other's days. */
const AT_ONCE: Readonly<Record<Errand, number>> = { produce: 2, work: 2, reap: 1 }
/** Chance decides whether a loop comes to some points before its victim ends. */
const TRIES = 3

let dice: () => number
beforeAll(() => {
  dice = random(seedOf('kill points'))
})

function some<T>(list: readonly T[], count: number): T[] {
  const left = [...list]
  const chosen: T[] = []
  while (chosen.length < count && left.length > 0)
    chosen.push(...left.splice(Math.floor(dice() * left.length), 1))
  return chosen
}

/** Points that must be struck, and others that need not be: a loop may not come to a second time. */
interface Plan {
  readonly musts: readonly Point[]
  readonly others: readonly Point[]
}

function planOf(errand: Errand, counts: readonly (readonly [string, number])[]): Plan {
  expect(counts.map(([label]) => label)).toEqual(expect.arrayContaining([...REQUIRED[errand]]))
  const all = pointsOf(counts, 3)
  const isByChance = ({ label }: Point) => errand === 'work' && OF_THE_ELDEST.includes(label)
  const first = all.filter((point) => point.nth === 1 && !isByChance(point))
  if (IS_LONG) {
    return { musts: some(first, first.length), others: all.filter((point) => !first.includes(point)) }
  }
  const musts = REQUIRED[errand].flatMap((label) =>
    some(
      first.filter((point) => point.label === label),
      1,
    ),
  )
  return {
    musts,
    others: some(
      all.filter((point) => !musts.includes(point)),
      SOME_OTHERS,
    ),
  }
}

/** Where the victims go, a lane for each that runs at the same time. */
type Lanes = readonly Trial[]

/** Send victims to these points, again to those that were missed; the names of the missed. */
async function strikeAll(
  lanes: Lanes,
  errand: Errand,
  points: readonly Point[],
  tries: number,
): Promise<string[]> {
  const queue = points.map((point) => ({ point, tries }))
  const missed: string[] = []
  const send = async (trial: Trial) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { point, tries } = next
      const { wasKilled, waited } = await trial.send(errand, point)
      if (wasKilled && (waited || point.moment !== 'sent' || WAITS_FOR[point.label] === undefined)) continue
      if (tries > 1) queue.push({ point, tries: tries - 1 })
      else missed.push(`${nameOf(point)}${wasKilled ? ' (it waited for no lock)' : ''}`)
    }
  }
  await Promise.all(lanes.map(send))
  return missed
}

/** Strike at all of them; say what was missed. */
async function carryOut(lanes: Lanes, errand: Errand, { musts, others }: Plan): Promise<void> {
  const missed = await strikeAll(lanes, errand, musts, TRIES)
  const missedOthers = await strikeAll(lanes, errand, others, 1)
  const names = IS_LONG ? '' : `: ${[...musts, ...others].map(nameOf).join('; ')}`
  console.log(
    `${errand}: ${musts.length - missed.length} of ${musts.length} points that must be struck, ` +
      `${others.length - missedOthers.length} of ${others.length} others${names}\n` +
      `missed: ${[...missed, ...missedOthers].join('; ') || 'none'}`,
  )
  expect(missed).toEqual([])
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
    const lanes = Array.from({ length: AT_ONCE[errand] }, () => trial)
    await carryOut(lanes, errand, planOf(errand, calm.counts))
    expect(await trial.judge()).toEqual([])
  })
})

describe.runIf(IS_LONG)('a server that is killed at any point loses nothing that it acknowledged', () => {
  /** Each dies under one victim at a time: two servers, as there are two cores. */
  const servers: { server: MortalServer; stage: Stage }[] = []
  beforeEach(async () => {
    for (let n = 0; n < 2; n++) {
      const server = await startMortal()
      const stage = openStage(server.url)
      servers.push({ server, stage })
      const database = new Database({ connectionString: server.url })
      await migrate(database)
      await database.close()
      await installAudit(stage)
    }
  })
  afterEach(async () => {
    for (const { server, stage } of servers.splice(0)) {
      await stage.close()
      await server.stop()
    }
  })

  test.each(ERRANDS)('%s', { timeout: 1_200_000 }, async (errand) => {
    const lanes = servers.map(({ server, stage }) => new Trial(stage, server.url, server))
    const { counts } = await lanes[0]!.send(errand)
    const { musts } = planOf(errand, counts)
    await carryOut(lanes, errand, { musts, others: [] })
    for (const trial of lanes) expect(await trial.judge()).toEqual([])
  })
})
