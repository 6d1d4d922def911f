// One run: producers and workers at work while things break; then everything is healed, drained, and judged.

import { createRowlock } from '../src/index.ts'
import { check } from './checker.ts'
import type { Context, Nemesis } from './context.ts'
import { Crew } from './crew.ts'
import { readRest, settle, untilDrained } from './drain.ts'
import type { Call, History, Operation, Pause, Violation } from './history.ts'
import { CONCURRENCY, DEAF, TRANSACTIONAL } from './jobs.ts'
import { startLag } from './lag.ts'
import { NEMESES } from './nemesis/all.ts'
import { type Act, planOf } from './plan.ts'
import { startProducers } from './producer.ts'
import { startProxy } from './proxy.ts'
import { diceOf } from './random.ts'
import { installAudit, openStage, readWritten } from './stage.ts'

/** What a run is like. */
export interface ChaosOptions {
  readonly seconds: number
  readonly seed: number
  /** A migrated database of its own. */
  readonly url: string
  /** Restart the server; absent where it is not ours: then no fault does that. */
  readonly restart?: (how: 'fast' | 'immediate') => Promise<void>
  /** Errors in the server's log; absent where it is not ours: then its counters are asked for deadlocks. */
  readonly complaints?: () => ReadonlyMap<string, number>
  /** Instead of those that the seed makes. */
  readonly acts?: readonly Act[]
  /** Between two of them this much more. Unit: ms, default 0. */
  readonly paceMs?: number
  /** Only these may be picked. Default: all. */
  readonly faults?: readonly string[]
  readonly workers?: number
  /** Of each producer, between two calls. Unit: ms, default 60. */
  readonly pauseMs?: number
  /** From the last healing everything ends within this. Unit: ms, default BOUND_MS: a machine may be busy. */
  readonly boundMs?: number
  /** Is told each act as a line of JSON, and what came of it. */
  readonly log?: (line: string) => void
  /** Runs before anything else, on the migrated database: to break it on purpose. */
  readonly sabotage?: (sql: Context['sql']) => Promise<unknown>
}

/** What came of it. */
export interface ChaosResult {
  readonly history: History
  readonly violations: readonly Violation[]
  /** How often each fault was done. */
  readonly faults: Readonly<Record<string, number>>
  /** From the last healing to the end of the last job. Unit: ms. */
  readonly drainedMs: number
  /** What the machine withheld of that. Unit: ms. */
  readonly drainLagMs: number
  readonly unfit: number
  readonly warnings: Readonly<Record<string, number>>
}

const LEASE_MS = 2_000
/** Acts that are verbs of ours: what they throw is judged. */
const VERBS = ['operator', 'many', 'bulk']
const POLL_MS = 1_000
const BACKOFF_MS = 1_000
/** After the last fault is healed everything ends within this. */
export const BOUND_MS = LEASE_MS + POLL_MS + BACKOFF_MS + 5_000

/** What a killed worker ran starts again within this. */
export const SECOND_START_MS = LEASE_MS + 5_000

/** Run it. Throws only when the run itself could not be done. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { seed, url, log = () => {} } = options
  const began = performance.now()
  const stage = openStage(url)
  const proxies = { workers: await startProxy(url), producers: await startProxy(url) }
  const rowlock = createRowlock({
    connectionString: proxies.producers.url,
    statementTimeoutMs: 5_000,
    maxConnections: 4,
  })
  const crew = new Crew({
    url: proxies.workers.url,
    ledgerUrl: url,
    size: options.workers ?? 3,
    leaseMs: LEASE_MS,
    log: (line) => log(`# ${Math.round(performance.now() - began)} ${line}`),
  })
  try {
    await installAudit(stage)
    await options.sabotage?.(stage.sql)
    const calls: Call[] = []
    const recent: string[] = []
    const operations: Operation[] = []
    const pauses: Pause[] = []
    const over = new AbortController()
    const context: Context = {
      leaseMs: LEASE_MS,
      crew,
      proxies,
      sql: stage.sql,
      session: stage.session,
      ...(options.restart !== undefined && { restart: options.restart }),
      rowlock,
      recent,
      operations,
      pauses,
      pause: (ms) => pause(ms, over.signal),
    }
    await crew.start()
    const stopProducers = startProducers({
      rowlock,
      url: proxies.producers.url,
      seed,
      calls,
      recent,
      pauseMs: options.pauseMs ?? 60,
      waiting: async () => {
        const [row] = await stage.sql<{ jobs: number }>(
          'select count(*)::integer as jobs from rowlock.waiting',
        )
        return row!.jobs
      },
    })
    const { faults, mishaps, acts } = await inflictAll(options, context, log, over)
    // From here on nothing is broken any more.
    await heal(context, log)
    await stopProducers()
    await heal(context, log)
    await crew.calm()
    log(`# healed`)
    const lag = startLag()
    const { drainedMs, unfinished } = await untilDrained(stage, options.boundMs ?? BOUND_MS, log)
    const drainLagMs = Math.round(lag.stop())
    log(`# drained after ${drainedMs} ms, ${unfinished} beyond the bound`)
    await crew.stop()
    await rowlock.close()
    await settle(stage)
    const complaints = options.complaints?.()
    for (const [what, times] of complaints ?? []) log(`# the server said ${times} times: ${what}`)
    const left = await readRest(stage)
    const deadlocks = complaints?.get('ERROR:  deadlock detected') ?? left.deadlocks
    const rest = { ...left, unfinished, deadlocks }
    const history: History = {
      ...(await readWritten(stage)),
      calls,
      operations,
      pauses,
      acts,
      secondStartMs: Math.max(SECOND_START_MS, options.boundMs ?? 0),
      deaths: crew.deaths,
      mishaps: [...mishaps, ...crew.mishaps],
      concurrency: CONCURRENCY,
      deaf: DEAF,
      transactional: TRANSACTIONAL,
      rest,
    }
    return {
      history,
      violations: check(history),
      faults,
      drainedMs,
      drainLagMs,
      unfit: crew.unfit,
      warnings: Object.fromEntries(crew.warnings),
    }
  } finally {
    crew.end()
    await rowlock.close()
    await Promise.all([proxies.workers.close(), proxies.producers.close()])
    await stage.close()
  }
}

function known(options: ChaosOptions): readonly Nemesis[] {
  return NEMESES.filter(
    ({ name, ownServer }) =>
      (options.faults === undefined || options.faults.includes(name)) &&
      (options.restart !== undefined || ownServer !== true),
  )
}

async function inflictAll(
  options: ChaosOptions,
  context: Context,
  log: (line: string) => void,
  over: AbortController,
): Promise<{ faults: Record<string, number>; mishaps: string[]; acts: Span[] }> {
  const nemeses = known(options)
  const plan = options.acts ?? planOf(options.seed, options.seconds, nemeses, options.paceMs)
  const faults: Record<string, number> = {}
  const mishaps: string[] = []
  const acts: Span[] = []
  const running = new Set<Promise<void>>()
  const began = performance.now()
  for (const act of plan) {
    const nemesis = nemeses.find(({ name }) => name === act.fault)
    if (nemesis === undefined) continue
    await pause(began + act.atMs - performance.now())
    log(JSON.stringify(act))
    const from = Date.now()
    const done = nemesis.inflict(context, diceOf(act.seed)).then(
      (what) => {
        faults[act.fault] = (faults[act.fault] ?? 0) + 1
        log(`# ${act.atMs} ${act.fault}: ${what}`)
      },
      (error) => {
        log(`# ${act.atMs} ${act.fault} could not be done: ${String(error)}`)
        // A fault that meets another may fail; a verb that throws what it never should is a fault of ours.
        if (VERBS.includes(act.fault)) mishaps.push(`an operator's verb threw ${String(error)}`)
      },
    )
    running.add(done)
    void done.finally(() => {
      acts.push({ fault: act.fault, from, to: Date.now() })
      running.delete(done)
    })
  }
  await pause(began + options.seconds * 1_000 - performance.now())
  over.abort()
  await Promise.all(running)
  return { faults, mishaps, acts }
}

type Span = NonNullable<History['acts']>[number]

async function heal(context: Context, log: (line: string) => void): Promise<void> {
  for (const { name, heal: mend } of NEMESES) {
    await mend?.(context).catch((error) => log(`# ${name} could not be healed: ${String(error)}`))
  }
}

function pause(ms: number, until?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (until?.aborted || ms <= 0) return resolve()
    const end = () => {
      clearTimeout(timer)
      until?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    until?.addEventListener('abort', end)
  })
}
