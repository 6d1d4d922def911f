// Machines whose clocks are wrong, and step while they work: leases go by the database's clock and by durations, so
// nobody is taken for dead, nothing runs twice, and nothing storms.

import { fixed } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from '../worker/child-jobs.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('wrong clock')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
})
afterEach(async () => {
  await killChildren()
  await rig.rest()
})
afterAll(() => rig.drop())

test('workers an hour ahead, an hour behind and stepping share the jobs, each run once', async () => {
  const again = { retry: { backoff: fixed(0) } }
  const start = (skewMs: number | 'stepping') =>
    startChild('faults/wrong-clock-child.ts', {
      url: rig.db.url,
      ledger: rig.db.url,
      options: { lease: 6_000, heartbeat: 400, listen: true, queues: { default: { concurrency: 5 } } },
      skewMs,
    })
  const workers = [start(3_600_000), start(-3_600_000), start('stepping')]
  for (const worker of workers) await worker.until('it is ready', ({ ready }) => ready)
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 150 }, () => jobs.work.with(100, again)))
  const late = await rig.rowlock.enqueue(jobs.work, 0, { ...again, delay: 1_500 })
  for (const { id } of [...all, late]) {
    expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, failures: 0, attempts: [] })
  }
  // One may have been slow to begin: there is work until each has had some.
  const pids = () => rig.db.value<number>('select count(distinct pid)::integer from ledger')
  while ((await pids()) < 3) {
    const more = await rig.rowlock.enqueueMany(Array.from({ length: 30 }, () => jobs.work.with(100, again)))
    for (const { id } of more)
      expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, attempts: [] })
    all.push(...more)
  }
  const row = (await rig.rowlock.job(late.id))!
  expect(row.finishedAt!.getTime()).toBeGreaterThanOrEqual(row.availableAt.getTime())
  // Through several leases nobody was taken for dead, and the listener was not lost.
  const since = await rig.db.value<string>('select clock_timestamp()::text')
  await until('all have beaten through two leases more', async () => {
    const beats = `select count(*)::integer from rowlock.worker where beat_at > $1::timestamptz + interval '13 s'`
    return (await rig.db.value(beats, [since])) === 3
  })
  for (const worker of workers) {
    expect(
      worker.said.filter(({ event, fault, warning }) => event === 'lease_lost' || fault || warning),
    ).toEqual([])
    expect(worker.said.filter(({ event }) => event === 'leased')).toHaveLength(1)
  }
  expect(await rig.db.value(`select count(*)::integer from ledger where phase = 'start'`)).toBe(
    all.length + 1,
  )
  await until('they beat', async () => {
    return (await rig.db.value('select count(*)::integer from rowlock.worker where expires_at > now()')) === 3
  })
})
