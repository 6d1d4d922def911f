// One failover under load: producers and workers at work, the primary killed, the standby promoted; then everything is
// drained and judged.

import { createRowlock } from '../src/index.ts'
import { BOUND_MS } from './chaos.ts'
import { check } from './checker.ts'
import { Crew } from './crew.ts'
import { readRest, settle, untilDrained, WHAT_IS_LEFT } from './drain.ts'
import type { Call, History, Violation } from './history.ts'
import { CONCURRENCY, DEAF, TRANSACTIONAL } from './jobs.ts'
import { type PairOptions, startPair } from './pair.ts'
import { startProducers } from './producer.ts'
import { startProxy } from './proxy.ts'
import { installAudit, openStage, readWritten, type Stage } from './stage.ts'

/** What a failover is like. */
export interface FailoverOptions extends PairOptions {
  /** How clients find the new primary: through an address that moves, or by an address with both hosts. */
  readonly follow: 'address' | 'hosts'
  readonly seed: number
  /** At the moment of the promotion half of the workers are killed. */
  readonly killsHalf?: boolean
  /** Connections to the old primary end without a word, as when its machine is lost. */
  readonly isSilent?: boolean
  /** How long there is load before, and after. Unit: ms. */
  readonly loadMs: number
  /** How long replication was behind when the primary died. Unit: ms; for asynchronous pairs. */
  readonly behindMs?: number
  /** From the end of the load everything ends within this. Unit: ms, default BOUND_MS. */
  readonly boundMs?: number
  readonly log?: (line: string) => void
}

/** What came of it. */
export interface FailoverResult {
  readonly history: History
  /** Of all that should not have been: what no loss of the last moments accounts for. */
  readonly violations: readonly Violation[]
  /** Of all that should not have been: what does go back to the last moments, which replication had not taken over. */
  readonly tail: readonly Violation[]
  readonly warnings: ReadonlyMap<string, number>
  /** From the death of the primary to the first job that was enqueued on the new one. Unit: ms. */
  readonly enqueuedAfterMs: number
  /** To the first job that was done there. */
  readonly doneAfterMs: number
  readonly drainedMs: number
  /** Processes that worked at the end and had worked before. */
  readonly survivors: number
}

const LEASE_MS = 2_000
const WORKERS = 2
/** The database must be right about these, whatever was lost. */
const ALWAYS_BAD: readonly Violation['figure'][] = [
  'stuck',
  'left_open',
  'deadlocks',
  'unexpected_exits',
  'illegal_transitions',
]
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Run it. Throws only when the run itself could not be done. */
export async function runFailover(options: FailoverOptions): Promise<FailoverResult> {
  const { follow, seed, loadMs, log = () => {} } = options
  const pair = await startPair(options)
  // The ledger, the audit and the judge reach whichever server is the primary.
  const quiet = await startProxy(pair.primary.url)
  const address = await startProxy(pair.primary.url)
  const url = follow === 'hosts' ? pair.bothHosts : address.url
  const stage = openStage(quiet.url)
  const rowlock = createRowlock({ connectionString: url, statementTimeoutMs: 5_000 })
  const crew = new Crew({ url, ledgerUrl: quiet.url, size: WORKERS, leaseMs: LEASE_MS, log })
  const calls: Call[] = []
  let stopProducers = async () => {}
  try {
    await rowlock.migrate()
    await installAudit(stage)
    await crew.start()
    if (crew.mishaps.length > 0) throw new Error(`a worker did not start: ${crew.mishaps[0]}`)
    const before = crew.members.map(({ pid }) => pid)
    const waiting = async () =>
      (await stage.sql<{ jobs: number }>('select count(*)::integer as jobs from rowlock.waiting'))[0]!.jobs
    stopProducers = startProducers({
      rowlock,
      url: quiet.url,
      seed,
      calls,
      recent: [],
      pauseMs: 60,
      waiting,
    })
    await sleep(loadMs)
    const known = await whatIsSafe(stage, calls, pair.caughtUp)
    if (options.behindMs !== undefined) {
      await pair.stream.set('blackhole')
      await sleep(options.behindMs)
    }
    log('# the primary dies')
    if (options.isSilent) address.strand()
    const answered = calls.length
    const died = performance.now()
    const diedAt = Date.now()
    await pair.killPrimary()
    const [half] = crew.members
    await Promise.all([pair.promote(), options.killsHalf && half !== undefined ? crew.kill(half) : undefined])
    for (const way of [quiet, address]) way.lead(pair.standby.url)
    quiet.reset()
    log(`# promoted after ${Math.round(performance.now() - died)} ms`)
    const [enqueued, done] = await Promise.all([
      until(stage, 'nothing was enqueued on the new primary', () =>
        calls.slice(answered).some(({ answer }) => answer === 'ok'),
      ).then(() => performance.now() - died),
      until(stage, 'nothing was done on the new primary', async () => {
        return (await stage.sql(WAS_DONE, [diedAt])).length > 0
      }).then(() => performance.now() - died),
    ])
    await sleep(loadMs)
    await stopProducers()
    stopProducers = async () => {}
    await crew.calm()
    const { drainedMs, unfinished } = await untilDrained(stage, options.boundMs ?? BOUND_MS, log)
    const survivors = crew.members.filter(({ pid }) => before.includes(pid)).length
    await crew.stop()
    await rowlock.close()
    await settle(stage)
    const history: History = {
      ...(await readWritten(stage)),
      calls,
      operations: [],
      deaths: crew.deaths,
      mishaps: crew.mishaps,
      concurrency: CONCURRENCY,
      deaf: DEAF,
      transactional: TRANSACTIONAL,
      rest: { ...(await readRest(stage)), unfinished },
    }
    const all = check(history)
    const isTail = options.behindMs === undefined ? () => false : known.isTail
    return {
      history,
      violations: [...all.filter((one) => !isTail(one)), ...known.lost(history)],
      tail: all.filter(isTail),
      warnings: crew.warnings,
      enqueuedAfterMs: Math.round(enqueued),
      doneAfterMs: Math.round(done),
      drainedMs,
      survivors,
    }
  } finally {
    crew.end()
    await stopProducers()
    await rowlock.close()
    await stage.close()
    await Promise.all([quiet.close(), address.close()])
    await pair.stop()
  }
}

interface Safe {
  /** Does this go back to what replication may not have taken over? */
  isTail(violation: Violation): boolean
  /** Calls that were answered before, and whose jobs are gone. */
  lost(history: History): Violation[]
}

/** What is on both servers when this returns: the jobs that had ended, and the calls that had been answered. */
async function whatIsSafe(
  stage: Stage,
  calls: readonly Call[],
  caughtUp: () => Promise<void>,
): Promise<Safe> {
  const answered = calls.filter(({ answer }) => answer === 'ok')
  const rows = await stage.sql<{ id: string }>(
    `select id::text as id from rowlock.job where state in ('done', 'failed', 'cancelled')`,
  )
  await caughtUp()
  const ended = new Set(rows.map(({ id }) => id))
  return {
    isTail: ({ figure, jobId, says }) =>
      !ALWAYS_BAD.includes(figure) &&
      !says.includes(`its transaction's row`) &&
      (jobId === undefined || !ended.has(jobId)),
    lost({ jobs }) {
      const refs = new Map(jobs.map(({ id, ref }) => [id, ref]))
      return answered
        .filter(({ id, ref, created }) => !refs.has(id!) || (created === true && refs.get(id!) !== ref))
        .map(({ id, ref }) => ({
          oracle: 'O1',
          figure: 'lost',
          jobId: id!,
          says: `${ref} was acknowledged, and the standby had it`,
        }))
    },
  }
}

/** Wait until it is so; else say what the database looks like. */
async function until({ sql }: Stage, what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000
  while (performance.now() < end) {
    if (await isSo()) return
    await sleep(10)
  }
  throw new Error(`${what}: ${JSON.stringify([...(await sql(WHAT_IS_LEFT)), ...(await sql(WHO_IS_THERE))])}`)
}

const WHO_IS_THERE = `
  select application_name as who, state, wait_event_type || ': ' || wait_event as waits, left(query, 60) as query,
         extract(epoch from clock_timestamp() - query_start)::integer as seconds, pg_blocking_pids(pid)::text as behind
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
const WAS_DONE = `
  select 1 from faults.audit
   where phase = 'finished' and op = 'insert' and state = 'done' and at > to_timestamp($1::double precision / 1000)
   limit 1`
