// An old snapshot is held while jobs go through: what dead rows that vacuum may not take do to claims and latencies.

import { type Child, startChild } from '../kit/child.ts'
import { clientOf } from '../kit/counted.ts'
import { serverCpuUs } from '../kit/cpu.ts'
import { interleaved, medians, percentile, spreads } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import { Contest } from '../peers/contest.ts'
import { type Entry, entries, jobsOf } from '../peers/roster.ts'

const OURS = 'rowlock'
const NAMES = [OURS, 'graphile', 'pg-boss', 'bullmq-postgres']
const PER_CALL = 500
/** A contender that wades too long is stopped here; what went through by then counts. */
const STOP_MS = { quick: 15_000, whole: 600_000 }
const PACE_MS = 20

interface Stretch {
  readonly claimP50Ms: number
  readonly claimP95Ms: number
  readonly perSecond: number
  readonly through: number
  /** Blocks that statements touched, and CPU time of the server, a job. */
  readonly buffers: number
  readonly pgCpuUs: number
}

interface Stage {
  /** What the server has spent on this database so far. */
  readonly spent: () => Promise<{ buffers: number; cpuUs: number }>
  readonly producer: Child
  readonly worker: Child
  /** Numbers of jobs that were given out. */
  next: number
}

/** Enqueue and work at once until so many went through, or the time is over. */
async function goThrough(stage: Stage, jobs: number, stopMs: number, fromHalf = false): Promise<Stretch> {
  const before = await stage.spent()
  const began = performance.now()
  let handled = 0
  stage.worker.onTold((told) => {
    handled = (told as { handled?: number }).handled ?? handled
  })
  const from = handled
  let given = 0
  await stage.worker.ask('claims')
  while (handled - from < jobs && performance.now() - began < stopMs) {
    if (given < jobs && given - (handled - from) < 4 * PER_CALL) {
      const ns = Array.from({ length: PER_CALL }, () => stage.next++)
      await stage.producer.ask('commit', { ns, holdMs: 0 })
      given += PER_CALL
    } else await new Promise((resolve) => setTimeout(resolve, 2))
    if (fromHalf && handled - from < jobs / 2) await stage.worker.ask('claims')
  }
  const seconds = (performance.now() - began) / 1000
  const after = await stage.spent()
  const { value: claims } = await stage.worker.ask<number[]>('claims')
  return {
    claimP50Ms: percentile(claims, 0.5),
    claimP95Ms: percentile(claims, 0.95),
    perSecond: (handled - from) / seconds,
    through: handled - from,
    buffers: (after.buffers - before.buffers) / (handled - from),
    pgCpuUs: (after.cpuUs - before.cpuUs) / (handled - from),
  }
}

/** Single jobs at a calm pace: from their commit to the start of their handler. Unit: ms. */
async function latencies(stage: Stage, count: number): Promise<number[]> {
  const committed = new Map<number, number>()
  await stage.worker.ask('starts')
  for (let n = 0; n < count; n++) {
    const number = stage.next++
    committed.set(number, (await stage.producer.ask<number>('commit', { ns: [number], holdMs: 0 })).value)
    await new Promise((resolve) => setTimeout(resolve, PACE_MS))
  }
  const found: number[] = []
  for (const deadline = performance.now() + 10_000; found.length < count && performance.now() < deadline; ) {
    const { value } = await stage.worker.ask<[number, number][]>('starts')
    for (const [n, at] of value) {
      const from = committed.get(n)
      if (from !== undefined) found.push((at - from) / 1e6)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return found
}

/** One contender: clean, then with a snapshot held, then after it was let go. */
async function measure(bench: Bench, contest: Contest, entry: Entry): Promise<Figures> {
  const ready = await contest.ready(entry)
  const timed = new URL(`../ours/timed.ts?peer=${entry.name}`, import.meta.url)
  const [producer, worker] = await Promise.all([ready.child(), startChild(timed)])
  const server = await bench.server()
  const spent = async () => {
    const { rows } = await server.admin.query(
      `select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as buffers from pg_stat_statements
        where dbid = (select oid from pg_database where datname = $1)`,
      [new URL(ready.place.url).pathname.slice(1)],
    )
    return { buffers: rows[0].buffers as number, cpuUs: serverCpuUs(server.pid) ?? Number.NaN }
  }
  const stage: Stage = { spent, producer, worker, next: 0 }
  const holder = await clientOf(ready.place.url)
  const jobs = jobsOf(entry, bench.quick ? 20_000 : 1_000_000)
  const stopMs = bench.quick ? STOP_MS.quick : STOP_MS.whole
  const singles = bench.quick ? 50 : 500
  try {
    await producer.ask('open', ready.place)
    await worker.ask('open', ready.place)
    await worker.ask('work')
    const clean = await goThrough(stage, Math.min(jobs, bench.quick ? 5_000 : 50_000), stopMs)
    const calm = await latencies(stage, singles)
    await holder.query('vacuum')
    await holder.query('begin isolation level repeatable read')
    await holder.query('select count(*) from pg_class')
    const held = await goThrough(stage, jobs, stopMs, true)
    const late = await latencies(stage, singles)
    await holder.query('rollback')
    // As autovacuum does, within a minute or so of the release.
    await holder.query('vacuum')
    const again = await goThrough(stage, Math.min(jobs, bench.quick ? 5_000 : 50_000), stopMs)
    const after = await latencies(stage, singles)
    await worker.ask('close')
    return {
      cleanClaimP95Ms: clean.claimP95Ms,
      heldClaimP95Ms: held.claimP95Ms,
      afterClaimP95Ms: again.claimP95Ms,
      claimRatio: held.claimP95Ms / clean.claimP95Ms,
      cleanP50Ms: percentile(calm, 0.5),
      heldP50Ms: percentile(late, 0.5),
      afterP50Ms: percentile(after, 0.5),
      latencyRatio: percentile(late, 0.5) / percentile(calm, 0.5),
      recoveredRatio: again.claimP95Ms / clean.claimP95Ms,
      cleanPerSecond: clean.perSecond,
      heldPerSecond: held.perSecond,
      through: held.through,
      cleanBuffers: clean.buffers,
      heldBuffers: held.buffers,
      cleanCpuUs: clean.pgCpuUs,
      heldCpuUs: held.pgCpuUs,
    }
  } finally {
    await holder.end().catch(() => {})
    await Promise.all([producer.end(), worker.end()])
  }
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const contest = new Contest(bench)
  const there = await contest.present(entries(bench.among ?? (bench.quick ? NAMES.slice(0, 2) : NAMES)))
  const samples = await interleaved(
    bench.rounds,
    there,
    async (entry, round) => {
      const figures = await measure(bench, contest, entry)
      bench.say(`  ${round + 1} ${entry.name}: claim p95 × ${figures.claimRatio!.toFixed(1)}`)
      return figures
    },
    (entry, error) => contest.miss(entry, error),
    bench.budgetMs,
  )
  const ours = medians(samples.get(OURS) ?? [])
  const others = [...samples.keys()].filter((name) => name !== OURS)
  const targets: Target[] = [
    { what: 'claim p95 under an old snapshot against a clean one', is: ours.claimRatio!, atMost: 3 },
    { what: 'latency p50 under an old snapshot against a clean one', is: ours.latencyRatio!, atMost: 2 },
    { what: 'claim p95 after the release and a vacuum, no restart', is: ours.recoveredRatio!, atMost: 1.5 },
  ].filter(({ is }) => Number.isFinite(is))
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours,
    peers: Object.fromEntries(others.map((name) => [name, medians(samples.get(name)!)])),
    ratios: Object.fromEntries(
      others.map((name) => [
        `${name}: rate under it`,
        ours.heldPerSecond! / medians(samples.get(name)!).heldPerSecond!,
      ]),
    ),
    counted: Object.fromEntries(
      [...samples].map(([name, all]) => {
        const { cleanBuffers, heldBuffers, cleanCpuUs, heldCpuUs } = medians(all) as Record<string, number>
        return [name, { cleanBuffers, heldBuffers, cleanCpuUs, heldCpuUs } as Figures]
      }),
    ),
    targets,
    tables: [
      {
        title: 'Before, during and after an old snapshot',
        columns: [
          '',
          'jobs that went through',
          'buffers a job, clean',
          'held',
          'PostgreSQL CPU, µs a job, clean',
          'held',
          'jobs/s, clean',
          'jobs/s, held',
          'claim p95, clean, ms',
          'held',
          'after',
          'latency p50, clean, ms',
          'held',
          'after',
        ],
        rows: [...samples].map(([name, all]) => {
          const each = spreads(all)
          return [
            name,
            each.through!.median,
            each.cleanBuffers!,
            each.heldBuffers!,
            each.cleanCpuUs!,
            each.heldCpuUs!,
            each.cleanPerSecond!,
            each.heldPerSecond!,
            each.cleanClaimP95Ms!,
            each.heldClaimP95Ms!,
            each.afterClaimP95Ms!,
            each.cleanP50Ms!,
            each.heldP50Ms!,
            each.afterP50Ms!,
          ]
        }),
      },
    ],
    plots: [
      {
        name: 'claims',
        title: 'The slowest twentieth of claims, before, during and after an old snapshot',
        kind: 'bars',
        xLabel: '',
        yLabel: 'claim p95, ms',
        yScale: 'log',
        series: (['clean', 'held', 'after'] as const).map((when) => ({
          name: when,
          points: [...samples].map(([name, all]) => ({ x: name, y: medians(all)[`${when}ClaimP95Ms`]! })),
        })),
      },
    ],
    contenders: contest.contenders,
    missing: contest.missing,
  }
}

export const scenario: Scenario = {
  name: 'horizon',
  title: 'an old snapshot is held while a million jobs go through',
  how: [
    'A producer commits 500 jobs a call while fewer than 2,000 wait, a worker handles them; then single jobs at 50 a',
    'second, from the commit to the start of the handler. First with nothing held; then another session of the same',
    'database begins a repeatable read, takes its snapshot and keeps it, while all jobs go through; then it is let go,',
    'and `vacuum` runs, as autovacuum would. Claims are timed in the worker’s process from the statement that takes',
    'jobs to its answer; while the snapshot is held, those of the last half count. Who wades too long is stopped after',
    'ten minutes.',
  ].join('\n'),
  rounds: 3,
  run,
}
