// Two transactions meet on one job, in every order of their statements; and several, in orders chosen at random.
// Whatever the order: one phase for each job, one owner, keys with their live jobs and no others.
//
// ROWLOCK_TEST_SEED repeats the random part.

import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { interleave, waitForNobody } from '../../faults/interleaving/actor.ts'
import { ordersOf } from '../../faults/interleaving/orders.ts'
import { actOf, MEETINGS, makeScene, type Stand } from '../../faults/interleaving/scene.ts'
import { faultsOf } from '../../faults/interleaving/verdict.ts'
import { seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'

let db: TestRowlock
let seed: number
let actors: pg.Client[]
let director: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('interleaving')
  seed = seedOf('interleaving')
  director = await db.session()
  actors = await Promise.all([db.session(), db.session(), db.session(), db.session()])
  for (const actor of actors) await waitForNobody(actor)
})
afterAll(() => db.drop())

const attemptOf = (stand: Stand) => (stand === 'waiting' ? 0 : 1)
const pairs = (Object.keys(MEETINGS) as Stand[]).flatMap((stand) =>
  MEETINGS[stand].flatMap((one, n) => MEETINGS[stand].slice(n).map((other) => ({ stand, one, other }))),
)

test.each(pairs)('$stand: $one and $other, in every order', async ({ stand, one, other }) => {
  for (const [left, right] of one === other
    ? [[one, other]]
    : ([
        [one, other],
        [other, one],
      ] as [string, string][])) {
    // A look at the act tells how many statements it has: begin, its own, and the end.
    const probe = await makeScene(director, stand)
    const lengths = [left, right].map((name) => actOf(name!, probe).statements.length + 2)
    // The first to begin is the left one: the others are the same with names exchanged.
    const orders = ordersOf(lengths[0]! - 1, lengths[1]!).map((rest) => [0, ...rest])
    for (const order of IS_LONG ? orders : orders.filter(matters(lengths[0]!))) {
      const scene = await makeScene(director, stand)
      const acts = [actOf(left!, scene), actOf(right!, scene)]
      const outcomes = await interleave(acts, actors, order)
      expect(await faultsOf(director, scene, outcomes, attemptOf(stand)), `order ${order}`).toEqual([])
    }
  }
})

/** In which the second acts while the first is open; where its begin stands says nothing new. */
function matters(length: number): (order: readonly number[]) => boolean {
  return (order) => {
    const second = order.map((n, at) => [n, at] as const).filter(([n]) => n === 1)
    const first = order.map((n, at) => [n, at] as const).filter(([n]) => n === 0)
    const acts = second[1]![1]
    return first[1]![1] < acts && acts < first[length - 1]![1] && second[0]![1] === acts - 1
  }
}

test('several transactions on one job, in orders chosen at random', async () => {
  const scenario = fc.constantFrom(...(Object.keys(MEETINGS) as Stand[])).chain((stand) =>
    fc.record({
      stand: fc.constant(stand),
      acts: fc.array(
        fc.record({
          name: fc.constantFrom(...MEETINGS[stand]),
          end: fc.constantFrom('commit', 'commit', 'rollback'),
        }),
        { minLength: 2, maxLength: 4 },
      ),
      order: fc.array(fc.nat(3), { minLength: 8, maxLength: 24 }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(scenario, async ({ stand, acts, order }) => {
      const scene = await makeScene(director, stand)
      const list = acts.map(({ name, end }) => actOf(name, scene, end as 'commit' | 'rollback'))
      const outcomes = await interleave(
        list,
        actors,
        order.map((n) => n % list.length),
      )
      expect(await faultsOf(director, scene, outcomes, attemptOf(stand))).toEqual([])
    }),
    {
      seed,
      numRuns: IS_LONG ? 3_000 : 150,
      interruptAfterTimeLimit: IS_LONG ? 120_000 : 10_000,
      markInterruptAsFailure: false,
      endOnFailure: process.env.ROWLOCK_MUTANT !== undefined,
    },
  )
}, 180_000)
