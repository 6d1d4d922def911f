// A short run of the chaos loop with a fresh seed each time, on a server of its own; and the parts of it that judge a
// real run: limits, ends that nobody asked for, what is left open.

import { createRowlock } from 'rowlock'
import { afterEach, describe, expect, test } from 'vitest'
import { accountOf, badFigures, writeEvidence } from '../../faults/account.ts'
import { runChaos } from '../../faults/chaos.ts'
import { check } from '../../faults/checker.ts'
import { type Cluster, startCluster } from '../../faults/cluster.ts'
import { Crew } from '../../faults/crew.ts'
import { readRest } from '../../faults/drain.ts'
import { NEMESES } from '../../faults/nemesis/all.ts'
import { planFrom, planOf } from '../../faults/plan.ts'
import { installAudit } from '../../faults/stage.ts'
import { seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase } from '../support/database.ts'
import { ROOT } from '../support/tree.ts'
import { until } from '../support/until.ts'

const SECONDS = 20

describe('a server of its own', () => {
  let cluster: Cluster | undefined
  afterEach(async () => {
    await cluster?.stop()
  })

  test('whatever breaks, nothing is lost, doubled or stuck', { timeout: 300_000 }, async () => {
    const seed = seedOf('chaos')
    cluster = await startCluster()
    const rowlock = createRowlock({ connectionString: cluster.url })
    await rowlock.migrate()
    await rowlock.close()
    const acts: string[] = []
    const result = await runChaos({
      seconds: SECONDS,
      seed,
      url: cluster.url,
      restart: cluster.restart,
      complaints: cluster.complaints,
      pauseMs: 120,
      boundMs: 60_000,
      log: (line) => acts.push(line),
    })
    const account = accountOf(SECONDS, seed, result)
    const bad = badFigures(account)
    if (bad.length > 0) {
      console.log(`the evidence is in ${writeEvidence(`${ROOT}artifacts/faults`, account, result)}`)
      console.log(acts.join('\n'))
    }
    expect(Object.fromEntries(bad.map((figure) => [figure, account[figure]]))).toEqual({})
    expect(account.enqueued).toBeGreaterThan(100)
    expect(account.finished).toBeGreaterThanOrEqual(account.enqueued)
    // The judge would have noticed: had one handler at a time been allowed, this very run would have broken it.
    const strict = check({ ...result.history, concurrency: { default: 1, narrow: 1 } })
    expect(strict.map(({ figure }) => figure)).toContain('limits_broken')
    // And had one job of those that were acknowledged been taken away.
    const { jobs, audit, calls } = result.history
    const answered = new Set(calls.filter(({ answer }) => answer === 'ok').map(({ id }) => id))
    const gone = jobs.find(({ id, state }) => state === 'done' && answered.has(id))!.id
    const without = check({
      ...result.history,
      jobs: jobs.filter(({ id }) => id !== gone),
      audit: audit.filter(({ jobId }) => jobId !== gone),
    })
    expect(without.map(({ figure }) => figure)).toContain('lost')
  })
})

test('a worker that somebody else kills is noticed, and replaced', async () => {
  const db = await rowlockDatabase('crew')
  await installAudit(db)
  const crew = new Crew({ url: db.url, ledgerUrl: db.url, size: 1, leaseMs: 2_000 })
  try {
    await crew.start()
    expect(crew.mishaps).toEqual([])
    const [first] = crew.members
    process.kill(first!.pid, 'SIGKILL')
    await until('it is noticed', () => crew.mishaps.length > 0)
    expect(crew.mishaps[0]).toContain(`process ${first!.pid} ended by itself (SIGKILL)`)
    await until('another is there', () => crew.members.length === 1)
    expect(crew.members[0]!.pid).not.toBe(first!.pid)
    await crew.stop()
    expect(crew.mishaps).toHaveLength(1)
  } finally {
    crew.end()
    await db.drop()
  }
})

test('what a run leaves open is seen: a session, its transaction, its lock, its worker', async () => {
  const db = await rowlockDatabase('rest')
  try {
    const none = { sessions: 0, idleInTransaction: 0, advisoryLocks: 0, workers: 0, cancelRequests: 0 }
    expect(await readRest(db)).toMatchObject(none)
    const session = await db.session()
    await session.query(`set application_name = 'rowlock worker'`)
    await session.query('begin')
    await session.query('select pg_advisory_xact_lock(1)')
    await db.sql(`select rowlock.register(gen_random_uuid(), '1 hour', '{}')`)
    await db.sql('insert into rowlock.cancel_request (job_id, requested_at) values (1, now())')
    const one = { sessions: 1, idleInTransaction: 1, advisoryLocks: 1, workers: 1, cancelRequests: 1 }
    expect(await readRest(db, 0)).toMatchObject(one)
  } finally {
    await db.drop()
  }
})

describe('a plan', () => {
  test('is the same for the same seed, and another for another', () => {
    expect(planOf(7, 60, NEMESES)).toEqual(planOf(7, 60, NEMESES))
    expect(planOf(7, 60, NEMESES)).not.toEqual(planOf(8, 60, NEMESES))
  })

  test('can be read back from the log of its run', () => {
    const acts = planOf(7, 60, NEMESES)
    const log = acts.map((act) => `${JSON.stringify(act)}\n# ${act.atMs} ${act.fault}: done`).join('\n')
    expect(planFrom(log)).toEqual(acts)
  })

  test('has a subset of the faults, one every 200 to 800 ms', () => {
    const sizes = Array.from({ length: 20 }, (_, seed) => {
      const acts = planOf(seed, 300, NEMESES)
      for (const [n, { atMs }] of acts.slice(1).entries()) {
        expect(atMs - acts[n]!.atMs).toBeGreaterThanOrEqual(199)
        expect(atMs - acts[n]!.atMs).toBeLessThanOrEqual(801)
      }
      return new Set(acts.map(({ fault }) => fault)).size
    })
    expect(Math.max(...sizes)).toBeLessThan(NEMESES.length)
    expect(new Set(sizes).size).toBeGreaterThan(3)
  })
})
