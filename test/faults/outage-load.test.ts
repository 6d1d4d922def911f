// What workers do to a database that is away or too slow: they ask less and less, cost no CPU, and come back alone.

import { existsSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { createRowlock, defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { type Child, killChildren, startChild } from '../support/child.ts'
import { IS_LONG } from '../support/long.ts'
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

/**
 * `resetting`: each connection is reset; `torn`: gets half a message, then its end; `late`: an answer when the time
 * for it is over.
 */
const MODES = IS_LONG
  ? (['away', 'resetting', 'silent', 'torn', 'late'] as const)
  : (['resetting', 'torn'] as const)
/** Rates are of this time; there is no condition that would say the same. */
const SECONDS = IS_LONG ? 60 : 5
/** Slower than any statement may be. */
const SLOW = IS_LONG
  ? { leaseMs: 20_000, delayMs: 12_000, windows: 6, seconds: 20 }
  : { leaseMs: 1_000, delayMs: 3_000, windows: 3, seconds: 3 }
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

/** In the place of the server: what it does with each connection. */
async function standIn(how: 'resetting' | 'torn'): Promise<{ attempts(): number; close(): Promise<void> }> {
  let attempts = 0
  const server = net.createServer((socket) => {
    attempts++
    socket.on('error', () => {})
    if (how === 'resetting') socket.resetAndDestroy()
    // The first half of an answer to the start: an authentication message of 8 bytes.
    else socket.once('data', () => socket.end(Buffer.from([0x52, 0, 0, 0, 8])))
  })
  const port = Number(new URL(proxy.url).port)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    attempts: () => attempts,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

test.each(MODES)(
  'a database that is %s is asked seldom, costs hardly any CPU, and is found again',
  { timeout: SECONDS * 1_000 + 60_000 },
  async (how) => {
    const worker = startChild('worker/child.ts', {
      url: proxy.url,
      ledger: rig.db.direct,
      options: { lease: 3_000, listen: true },
    })
    await worker.until('it is ready', ({ ready }) => ready)
    if (how === 'silent') await proxy.set('blackhole')
    else if (how === 'late') proxy.delay(4_000)
    else {
      await proxy.set('refuse')
      proxy.reset()
    }
    const instead = how === 'resetting' || how === 'torn' ? await standIn(how) : undefined
    const attempts = instead?.attempts ?? (() => proxy.accepted)
    await worker.until('it has noticed', ({ event }) => event === 'lease_lost')
    const [before, attemptsBefore, talk] = [cpuMs(worker.pid), attempts(), linesOf(worker)]
    await pass(SECONDS)
    const [used, asked, said] = [cpuMs(worker.pid), attempts() - attemptsBefore, linesOf(worker) - talk]
    await instead?.close()
    if (used !== undefined) expect((used - before!) / SECONDS).toBeLessThan(50)
    // Its three ways to the database try each for itself.
    expect(asked / SECONDS).toBeLessThan(2)
    if (how !== 'away') expect(asked).toBeGreaterThan(0)
    // Each thing that it says it says at most once in ten seconds.
    expect(said).toBeLessThanOrEqual(6 + SECONDS / 3)
    expect(proxy.open).toBeLessThan(10)
    proxy.delay(0)
    if (how === 'silent' || how === 'late') proxy.reset()
    await proxy.set('pass')
    const { id } = await rig.rowlock.enqueue(jobs.work, 0)
    await rig.becomes(id, 'done')
    expect(worker.said.filter(({ fault, warning }) => fault || warning)).toEqual([])
  },
)

/** What it has logged: warnings and errors, a line each. */
const linesOf = ({ stderr }: Child) => stderr.split('\n').filter((line) => line.startsWith('{')).length

test('a database that answers too late is not asked the more for it', {
  timeout: SLOW.windows * SLOW.seconds * 1_000 + 120_000,
}, async () => {
  const job = defineJob<number>('job')
  let runs = 0
  const options = { handlers: [handle(job, () => void runs++)], lease: SLOW.leaseMs }
  const worker = await rig.start(options, proxy.url)
  // Callers beside it, a few at a time, who are told that it takes too long, and ask for the next.
  const client = createRowlock({
    connectionString: proxy.url,
    maxConnections: 3,
    statementTimeoutMs: SLOW.leaseMs / 2,
  })
  let isOver = false
  const errors = new Set<string>()
  const call = async () => {
    for (let n = 0; !isOver; n++) {
      await client.enqueue(job, n).catch((error) => errors.add(error.code))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const callers = [call(), call(), call(), call(), call()]
  await until('it works', () => runs > 200)
  proxy.delay(SLOW.delayMs)
  await until('its lease is lost', () => worker.status.workerId === null, { withinMs: SLOW.leaseMs * 3 })
  const server = `select count(*)::integer from pg_stat_activity
    where datname = current_database() and application_name like 'rowlock%'`
  const asked = async () => {
    const before = proxy.statements.length
    await pass(SLOW.seconds)
    return { statements: proxy.statements.length - before, sessions: await rig.db.value<number>(server) }
  }
  const windows: Awaited<ReturnType<typeof asked>>[] = []
  for (let n = 0; n < SLOW.windows; n++) windows.push(await asked())
  const [first, last] = [windows[0]!, windows.at(-1)!]
  for (const { statements } of windows) expect(statements / SLOW.seconds).toBeLessThan(6)
  expect(last.statements).toBeLessThanOrEqual(first.statements * 1.5 + 3)
  // What was given up on this side goes on that side, for as long as its link is slow; it does not pile up.
  for (const { sessions } of windows) expect(sessions).toBeLessThan(30)
  isOver = true
  proxy.delay(0)
  await Promise.all(callers)
  expect([...errors].filter((code) => !/^(OUTCOME_UNKNOWN|DATABASE_UNAVAILABLE)$/.test(code))).toEqual([])
  const { id } = await client.enqueue(job, 1)
  await rig.becomes(id, 'done')
  await rig.idle()
  expect(worker.status.workerId).not.toBeNull()
  await client.close()
})
