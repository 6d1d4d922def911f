// Processes that are stopped with jobs at work and go on about when their lease ends: of the end that each then brings
// and the verdict that it was dead one counts, and a handler whose end did not count is told so.
//
// ROWLOCK_LONG=1: five hundred stops. Otherwise a few.

import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { random, seedOf } from '../engine/by-hand.ts'
import { type Child, killChildren, startChild } from '../support/child.ts'
import { IS_LONG } from '../support/long.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from '../worker/child-jobs.ts'

const LEASE_MS = 1_000
const PAIRS = 2
const ROUNDS = IS_LONG ? 250 : 5

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('stopped owner')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
})
afterEach(async () => {
  await killChildren()
  await rig.rest()
})
afterAll(() => rig.drop())

const work = { retry: { backoff: fixed(0), maxAttempts: 100 } }
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const child = (queue: string): Child =>
  startChild('worker/child.ts', {
    url: rig.db.url,
    ledger: rig.db.direct,
    options: { lease: LEASE_MS, queues: { [queue]: { concurrency: 6, prefetch: 0 } } },
  })

/** Stop whoever of the two has the jobs, for about as long as its lease has still to go. */
async function round(queue: string, pair: readonly Child[], next: () => number): Promise<void> {
  const lengths = [150, 300, 600].map((ms) => Math.floor(ms * (0.8 + next() * 0.4)))
  const all = await rig.rowlock.enqueueMany(lengths.map((ms) => jobs.work.with(ms, { ...work, queue })))
  const owner = await until('somebody has begun', () =>
    pair.find(({ said }) => said.some(({ started }) => started === all[0]!.id)),
  )
  owner.signal('SIGSTOP')
  await pause(LEASE_MS * (0.5 + next() * 0.8))
  owner.signal('SIGCONT')
  for (const { id } of all) await rig.becomes(id, 'done')
}

test('a process that goes on when its lease is over about now: each job ends once, and whoever lost it knows', {
  timeout: IS_LONG ? 1_800_000 : 60_000,
}, async () => {
  // Whoever is on duty is never stopped, and runs none of the jobs.
  await rig.start({ handlers: [handle(defineJob<null>('else'), () => {})] })
  const next = random(seedOf('stopped owner'))
  const queues = Array.from({ length: PAIRS }, (_, n) => `pair${n}`)
  const pairs = queues.map((queue) => [child(queue), child(queue)])
  const children = pairs.flat()
  for (const one of children) await one.until('it is ready', ({ ready }) => ready)
  await Promise.all(
    queues.map(async (queue, n) => {
      for (let i = 0; i < ROUNDS; i++) await round(queue, pairs[n]!, next)
    }),
  )
  await until('every handler has ended', () =>
    rig.db.value(
      `select count(*) filter (where phase = 'start') = count(*) filter (where phase = 'end') from ledger`,
    ),
  )
  for (const one of children) one.send({ stop: { grace: 5_000 } })
  for (const one of children) await one.until('it has stopped', ({ event }) => event === 'stopped')

  const ended = await rig.db.sql<{ id: string; attempt: number; lost: number; worker_id: string }>(
    `select id::text, attempt, worker_id::text,
            (select count(*)::integer from rowlock.attempt a where a.job_id = f.id and a.outcome = 'lost') as lost
       from rowlock.finished f where state = 'done' and queue like 'pair%'`,
  )
  expect(ended).toHaveLength(PAIRS * ROUNDS * 3)
  expect(new Set(ended.map(({ id }) => id)).size).toBe(ended.length)
  // Every attempt but the last was found lost; none was counted both ways.
  expect(ended.filter(({ attempt, lost }) => attempt !== lost + 1)).toEqual([])
  const winners = new Map(ended.map(({ id, attempt, worker_id }) => [`${id} ${attempt}`, worker_id]))
  const runs = await rig.db.sql<{ id: string; attempt: number; pid: number }>(
    `select job_id::text as id, attempt, pid from ledger where phase = 'end'`,
  )
  let losers = 0
  for (const { id, attempt, pid } of runs) {
    const { said } = children.find((one) => one.pid === pid)!
    const leased = said.flatMap(({ event, workerId }) => (event === 'leased' ? [workerId] : []))
    const isToldLate = said.some(({ event, jobId }) => event === 'outcome_lost' && jobId === id)
    const isToldAll = said.some(({ event }) => event === 'lease_lost')
    const winner = winners.get(`${id} ${attempt}`)
    if (winner !== undefined) expect(leased).toContain(winner)
    else losers++
    expect([id, attempt, winner !== undefined || isToldLate || isToldAll]).toEqual([id, attempt, true])
  }
  // One end of each job counted, all others did not.
  expect(runs.length - losers).toBe(ended.length)
  expect(children.flatMap(({ said }) => said.filter(({ fault, warning }) => fault || warning))).toEqual([])
  // The stops fell on both sides of the edge.
  expect(losers).toBeGreaterThan(0)
  expect(ended.some(({ lost }) => lost === 0)).toBe(true)
})
