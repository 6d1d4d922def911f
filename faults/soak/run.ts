// A soak: workers and a client at work for long, at a bounded rate, and what they hold counted again and again: while
// they work, and when all work has ended. Nothing is broken on purpose: whatever grows or is left over is a fault.

import { setTimeout as sleep } from 'node:timers/promises'
import type { State } from '../../src/index.ts'
import { readRest, settle, WHAT_IS_LEFT } from '../drain.ts'
import type { Rest } from '../history.ts'
import { openStage } from '../stage.ts'
import { Child } from './child.ts'
import { ENDS, type Kind } from './jobs.ts'
import type { Leak } from './leak.ts'
import type { Sample } from './slope.ts'

/** What a soak is like. */
export interface SoakOptions {
  /** A migrated database of its own. */
  readonly url: string
  /** Unit: seconds, after the warm-up. */
  readonly seconds: number
  /** How long nothing is counted: caches fill, code is compiled, connections are made. Unit: seconds. */
  readonly warmUpSeconds: number
  readonly seed: number
  /** It goes on until so many rounds were counted, on however slow a machine. Default 0. */
  readonly leastRounds?: number
  /** Of one round: work, then rest. Unit: ms, default 10,000. */
  readonly roundMs?: number
  /** Jobs a second, while they work. Default 60. */
  readonly rate?: number
  readonly workers?: number
  /** What handlers keep on purpose. Default: nothing. */
  readonly leaks?: readonly Leak[]
  readonly log?: (line: string) => void
}

/** One figure of one process, or of the server, at one kind of moment. */
export interface Series {
  readonly who: string
  readonly what: string
  readonly when: 'at work' | 'at rest'
  readonly samples: readonly Sample[]
}

/** What a client was answered in all. */
export interface Counts {
  readonly created: number
  readonly deduped: number
  readonly rolledBack: number
  readonly calledOff: number
  readonly pauses: number
}

/** What came of it. */
export interface SoakResult {
  readonly series: readonly Series[]
  readonly counts: Counts
  /** How many jobs ended in each state. */
  readonly ended: Readonly<Record<string, number>>
  /** What does not balance, in words. */
  readonly unbalanced: readonly string[]
  readonly mishaps: readonly string[]
  readonly warnings: Readonly<Record<string, number>>
}

/** Work, and then rest. */
export const ROUND_MS = 10_000
/** The longest kind takes half a second; all that is queued behind it a little more. */
const REST_WITHIN_MS = 60_000
/** Outcomes are written, connections given back, timers of the last jobs over. */
const BREATH_MS = 500
/** Of a round. */
const WORK_SHARE = 0.75

type Figures = Readonly<Record<string, number>>

/** Run it. Throws only when the run itself could not be done. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { url, seconds, warmUpSeconds, seed, leastRounds = 0, roundMs = ROUND_MS, rate = 60 } = options
  const { workers = 2, leaks = [], log = () => {} } = options
  const stage = openStage(url)
  const children: Child[] = []
  const start = async (name: string, program: string, input: object) => {
    const child = await Child.start(name, program, { url, ...input })
    children.push(child)
    return child
  }
  try {
    await stage.sql('create schema soak')
    await stage.sql('create table soak.booked (job_id bigint not null)')
    for (let n = 1; n <= workers; n++) await start(`worker ${n}`, './worker.ts', { leaks })
    const client = await start('client', './producer.ts', { seed, rate })
    const began = performance.now()
    const passed = () => (performance.now() - began) / 1_000
    const series = new Map<string, Noted>()
    const unbalanced: string[] = []
    const sample = async (when: Series['when']) => {
      const hours = passed() / 3_600
      const isWarm = passed() >= warmUpSeconds
      for (const [who, figures] of await count(children, stage)) {
        if (when === 'at rest') unbalanced.push(...heldAtRest(who, figures))
        if (isWarm) note(series, who, when, figures, hours)
      }
    }
    const isOver = () =>
      passed() >= warmUpSeconds + seconds &&
      [...series.values()].every(({ samples }) => samples.length >= leastRounds)
    let counts: Counts
    do {
      const roundAt = performance.now()
      const forMs = roundMs * WORK_SHARE
      const loaded = client.ask<Counts>('load', { forMs })
      await sleep(forMs * 0.6)
      await sample('at work')
      counts = await loaded
      unbalanced.push(...(await untilRest(stage)))
      await sleep(BREATH_MS)
      await sample('at rest')
      log(`after ${passed().toFixed(1)} s: ${JSON.stringify(counts)}`)
      await sleep(roundMs - (performance.now() - roundAt))
    } while (!isOver())
    for (const child of [...children].reverse()) await child.stop()
    await settle(stage)
    const { ended, wrong } = await ends(stage, counts)
    return {
      series: [...series.values()],
      counts,
      ended,
      unbalanced: [...unbalanced, ...wrong, ...leftOver(await readRest(stage))],
      mishaps: children.flatMap(({ mishaps }) => mishaps),
      warnings: Object.fromEntries(children.flatMap(({ warnings }) => [...warnings])),
    }
  } finally {
    for (const child of children) child.kill()
    await stage.close()
  }
}

type Noted = Series & { readonly samples: Sample[] }

function note(
  series: Map<string, Noted>,
  who: string,
  when: Series['when'],
  figures: Figures,
  hours: number,
): void {
  for (const [what, value] of Object.entries(figures)) {
    const name = `${who} ${what} ${when}`
    const one = series.get(name) ?? { who, what, when, samples: [] }
    series.set(name, one)
    one.samples.push({ hours, value })
  }
}

/** All processes at once, and the server. */
async function count(children: readonly Child[], { sql }: Sql): Promise<(readonly [string, Figures])[]> {
  const asked = children.map(async (child) => [child.name, await child.ask<Figures>('gauge')] as const)
  const counted = await Promise.all(asked)
  const [row] = await sql<{ connections: number; transactions: number }>(
    `select count(*)::integer as connections,
            (count(*) filter (where state like 'idle in transaction%'))::integer as transactions
       from pg_stat_activity where datname = current_database() and application_name like 'rowlock%'`,
  )
  return [...counted, ['server', { ...row! }]]
}

type Sql = Pick<ReturnType<typeof openStage>, 'sql'>

/** What no job is to be seen of then. */
const NONE_AT_REST = ['claimed', 'stuck', 'runs', 'transactions']

function heldAtRest(who: string, figures: Figures): string[] {
  return NONE_AT_REST.flatMap((what) => {
    const value = figures[what] ?? 0
    return value === 0 ? [] : [`${who} has ${value} ${what} at rest`]
  })
}

/** Until nothing waits and nothing runs. */
async function untilRest({ sql }: Sql): Promise<string[]> {
  const end = performance.now() + REST_WITHIN_MS
  for (;;) {
    const [row] = await sql<{ live: number }>(
      'select ((select count(*) from rowlock.waiting) + (select count(*) from rowlock.running))::integer as live',
    )
    if (row!.live === 0) return []
    if (performance.now() > end) return [`at rest there is still ${JSON.stringify(await sql(WHAT_IS_LEFT))}`]
    await sleep(50)
  }
}

/** Each job that was acknowledged has ended as its kind does, in one attempt or more of which none was lost. */
async function ends({ sql }: Sql, { created }: Counts): Promise<{ ended: Figures; wrong: string[] }> {
  const wrong: string[] = []
  const ended: Record<string, number> = {}
  let all = 0
  const rows = await sql<{ kind: Kind; state: State; jobs: number }>(
    'select kind, state, count(*)::integer as jobs from rowlock.job group by kind, state order by kind, state',
  )
  for (const { kind, state, jobs } of rows) {
    all += jobs
    ended[state] = (ended[state] ?? 0) + jobs
    if (!ENDS[kind].includes(state)) wrong.push(`${jobs} jobs of ${kind} ended as ${state}`)
  }
  if (all !== created) wrong.push(`${created} jobs were acknowledged, ${all} are there`)
  const [row] = await sql<{ lost: number; books: number; booked: number; keys: number }>(
    `select (select count(*) from rowlock.attempt where outcome = 'lost')::integer as lost,
            (select count(*) from rowlock.job where kind = 'book')::integer as books,
            (select count(*) from soak.booked)::integer as booked,
            (select count(*) from rowlock.dedupe)::integer as keys`,
  )
  const { lost, books, booked, keys } = row!
  if (lost > 0) wrong.push(`${lost} attempts were lost`)
  if (books !== booked) wrong.push(`${books} transactional jobs are done, with ${booked} rows`)
  if (keys > 0) wrong.push(`${keys} dedupe keys are left`)
  return { ended, wrong }
}

function leftOver(rest: Omit<Rest, 'unfinished'>): string[] {
  return Object.entries(rest)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `in the end there are left of ${what}: ${count}`)
}
