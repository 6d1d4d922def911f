// A job that must run alone, and how long those beside it wait for that.

import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { LIMITS } from '../../src/ground/limits.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  // A minute is too long for a test. Modules are this file's own.
  Object.assign(LIMITS.aloneWaitMs, { default: 300 })
  rig = await makeRig('alone')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const long = defineJob('long')
const quick = defineJob<string>('quick')

test('a job that must run alone does not hold up the others for as long as a long one takes', async () => {
  const ends: (() => void)[] = []
  const ran: string[] = []
  const worker = await rig.start({
    handlers: [
      handle(long, () => new Promise<void>((resolve) => ends.push(resolve))),
      handle(quick, ({ input }) => void ran.push(`${input} beside ${worker.status.running - 1}`)),
    ],
  })
  await rig.rowlock.enqueue(long, null)
  await until('the long one runs', () => ends.length === 1)
  const suspect = await rig.rowlock.enqueue(quick, 'suspect', { delay: '1h' })
  await rig.db.sql('update rowlock.waiting set losses = 2 where id = $1', [suspect.id])
  await rig.rowlock.runNow(suspect.id)
  await until('it waits to run alone', async () => (await rig.rowlock.job(suspect.id))?.state === 'running')
  const { id } = await rig.rowlock.enqueue(quick, 'other')
  await rig.becomes(id, 'done')
  expect(ran).toEqual(['other beside 1'])
  const row = await until('it is handed back', async () => {
    const job = await rig.rowlock.job(suspect.id)
    return job?.state === 'queued' ? job : undefined
  })
  expect(row).toMatchObject({ losses: 2, failures: 0 })
  expect(
    row.attempts.every(({ outcome, startedAt }) => outcome === 'handed_back' && startedAt === null),
  ).toBe(true)
  ends[0]!()
  await rig.becomes(suspect.id, 'done')
  expect(ran).toEqual(['other beside 1', 'suspect beside 0'])
})
