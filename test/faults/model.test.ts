// Random histories against the model in faults/model: after each step everything that can be seen is the same.
//
// ROWLOCK_TEST_SEED repeats a seed; ROWLOCK_TEST_REPLAY, as a failure prints it, repeats one history.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol, WORKER_STEPS } from '../../faults/model/commands.ts'
import { OPERATOR_STEPS } from '../../faults/model/operators.ts'
import { ModelDatabase } from '../../faults/model/queue.ts'
import { RealDatabase } from '../../faults/model/real.ts'
import { seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const IS_LONG = process.env.ROWLOCK_LONG === '1'
const IS_MUTANT = process.env.ROWLOCK_MUTANT !== undefined
const WITHIN_MS = IS_LONG ? 240_000 : IS_MUTANT ? 120_000 : 20_000
const RUNS = IS_LONG ? 5_000 : 600
const { seed, path, replayPath } = process.env.ROWLOCK_TEST_REPLAY
  ? JSON.parse(process.env.ROWLOCK_TEST_REPLAY)
  : { seed: seedOf('model'), path: undefined, replayPath: undefined }

let db: TestRowlock
let real: RealDatabase
beforeAll(async () => {
  db = await rowlockDatabase('model')
  real = new RealDatabase(await db.session())
  await real.takeClock()
})
afterAll(() => db.drop())

test('after every step of a random history the queue is what the model says', {
  timeout: WITHIN_MS * 2 + 60_000,
}, async () => {
  // A clock ahead of the server's: whatever reads another one is seen.
  const began = Date.parse('2031-03-01T00:00:00Z')
  let steps = 0
  const commands = fc.commands([...WORKER_STEPS, ...OPERATOR_STEPS], {
    maxCommands: 100,
    size: 'max',
    replayPath,
  })
  const property = fc.asyncProperty(commands, async (list) => {
    await real.begin(began)
    const model = new ModelDatabase(began)
    for (let n = 0; n < 2; n++) await enrol(model, real)
    await fc.asyncModelRun(() => ({ model, real }), list)
    steps += [...list].length
  })
  const details = await fc.check(property, {
    seed,
    path,
    numRuns: RUNS,
    interruptAfterTimeLimit: WITHIN_MS,
    // A mutant need not be made small.
    endOnFailure: IS_MUTANT,
  })
  console.log(`model: ${details.numRuns} histories, ${steps} steps`)
  // One that was found counts, also when the time was over before it was made small.
  if (details.counterexample === null) return expect(details.numRuns).toBeGreaterThan(0)
  const [list] = details.counterexample
  const replay = JSON.stringify({
    seed: details.seed,
    path: details.counterexamplePath,
    replayPath: /replayPath="([^"]*)"/.exec(String(list))?.[1],
  })
  const { message } = (details.errorInstance ?? {}) as { message?: string }
  expect.fail(`${message}\n\nafter: ${String(list)}\n\nrepeat: ROWLOCK_TEST_REPLAY='${replay}'`)
})
