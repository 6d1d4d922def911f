// What workers do to a database that is away or too slow: they ask less and less, cost no CPU, and come back alone.

import { existsSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { killChildren, startChild } from '../support/child.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'
import { jobs } from '../worker/child-jobs.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('outage load')
  await rig.db.sql(`create table ledger (
    job_id bigint, attempt integer, pid integer, phase text, at timestamptz default clock_timestamp())`)
  proxy = await startProxy(rig.db.url)
})
afterEach(async () => {
  await killChildren()
  await proxy.calm()
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const IS_LONG = process.env.ROWLOCK_LONG === '1'
const MODES = IS_LONG ? (['away', 'resetting', 'silent'] as const) : (['resetting'] as const)
const SECONDS = IS_LONG ? 30 : 6
/** CPU that the process has used. Unit: ms; undefined where the system does not say. */
function cpuMs(pid: number): number | undefined {
  const path = `/proc/${pid}/stat`
  if (!existsSync(path)) return undefined
  const fields = readFileSync(path, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
const pass = (seconds: number) => rig.db.sql('select pg_sleep($1)', [seconds])

test.each(MODES)(
  'a database that is %s is asked seldom, costs hardly any CPU, and is found again',
  async (how) => {
    const worker = startChild('worker/child.ts', {
      url: proxy.url,
      ledger: rig.db.url,
      options: { lease: 3_000, listen: true },
    })
    await worker.until('it is ready', ({ ready }) => ready)
    let attempts = 0
    let resetting: net.Server | undefined
    if (how === 'silent') await proxy.set('blackhole')
    else {
      await proxy.set('refuse')
      proxy.reset()
    }
    if (how === 'resetting') {
      resetting = net.createServer((socket) => {
        attempts++
        socket.on('error', () => {})
        socket.resetAndDestroy()
      })
      await new Promise<void>((resolve) =>
        resetting!.listen(Number(new URL(proxy.url).port), '127.0.0.1', resolve),
      )
    }
    await worker.until('it has noticed', ({ event }) => event === 'lease_lost')
    attempts = 0
    const before = cpuMs(worker.pid)
    await pass(SECONDS)
    const used = cpuMs(worker.pid)
    if (resetting) await new Promise((resolve) => resetting.close(resolve))
    if (used !== undefined) expect((used - before!) / SECONDS).toBeLessThan(50)
    expect(attempts / SECONDS).toBeLessThan(2)
    if (how === 'resetting') expect(attempts).toBeGreaterThan(0)
    if (how === 'silent') expect(proxy.open).toBeLessThan(10)
    if (how === 'silent') proxy.reset()
    await proxy.set('pass')
    const { id } = await rig.rowlock.enqueue(jobs.work, 0)
    await rig.becomes(id, 'done')
    expect(worker.said.filter(({ fault, warning }) => fault || warning)).toEqual([])
  },
)

test('a database that answers too late is not asked the more for it', async () => {
  const job = defineJob<number>('job')
  let runs = 0
  const worker = await rig.start({ handlers: [handle(job, () => void runs++)], lease: 1_000 }, proxy.url)
  await rig.rowlock.enqueueMany(Array.from({ length: 200 }, (_, n) => job.with(n)))
  await until('it works', () => runs > 0)
  proxy.delay(3_000)
  await until('its lease is lost', () => worker.status.workerId === null)
  const asked = async () => {
    const before = proxy.statements.length
    await pass(3)
    return proxy.statements.length - before
  }
  const counts = [await asked(), await asked(), await asked()]
  for (const count of counts) expect(count / 3).toBeLessThan(4)
  expect(counts[2]!).toBeLessThanOrEqual(counts[0]! + 2)
  proxy.delay(0)
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'done')
  await rig.idle()
  expect(await rig.db.value(`select count(*)::integer from rowlock.finished where state = 'done'`)).toBe(201)
})
