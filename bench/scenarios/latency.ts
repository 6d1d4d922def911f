// How long after its commit a job's handler starts, beside the peers: idle, busy, and out of a long transaction.

import { flushMs } from '../kit/flush.ts'
import { interleaved, percentile } from '../kit/rounds.ts'
import type { Bench, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import { COUNTED, countedOf, known, peersOf, picked, pointsOf, ratio, versusTable } from '../kit/versus.ts'
import { Contest } from '../peers/contest.ts'
import { latencies } from '../peers/latent.ts'
import { entries } from '../peers/roster.ts'

const OURS = 'rowlock'
const MAIN = ['rowlock', 'graphile-default', 'bullmq-redis']
const MORE = ['rowlock-default', 'graphile', 'pg-boss-work', 'bullmq-redis-aof', 'bullmq-postgres']
const IDLE = ['idleP50Ms', 'idleP95Ms', 'idleP99Ms', 'flushP50Ms']
const BUSY = ['steadyPerSecond', 'busyP50Ms', 'busyP95Ms', 'busyP99Ms']
const HELD = ['heldP50Ms', 'heldP95Ms', 'heldP99Ms']

async function run(bench: Bench): Promise<ScenarioResult> {
  const contest = new Contest(bench)
  const there = await contest.present(entries(bench.among ?? (bench.quick ? MAIN : [...MAIN, ...MORE])))
  const options = bench.quick ? { idle: 50, held: 3, busyMs: 2000 } : { idle: 300, held: 20, busyMs: 10_000 }
  const samples = await interleaved(
    bench.rounds,
    there,
    async (entry, round) => {
      const flushP50Ms = percentile(flushMs(50), 0.5)
      const figures: Record<string, number> = { ...(await latencies(contest, entry, options)), flushP50Ms }
      bench.say(`  ${round + 1} ${entry.name}: idle p50 ${figures.idleP50Ms?.toFixed(2)} ms`)
      return figures
    },
    (entry, error) => contest.miss(entry, error),
    bench.budgetMs,
  )
  const ours = picked(samples.get(OURS), [...IDLE, ...BUSY, ...HELD])
  // The faster of graphile's two configurations: its local queue is for throughput.
  const graphile = Math.max(
    ...['graphile', 'graphile-default']
      .map((name) => ratio(samples, 'idleP50Ms', OURS, name))
      .filter(Number.isFinite),
  )
  const targets: Target[] = [
    { what: 'idle, p50, ms', is: ours.idleP50Ms ?? Number.NaN, atMost: 2 },
    { what: 'idle, p50, by graphile', is: graphile, atMost: 0.5 },
  ]
  const names = there.map(({ name }) => name).filter((name) => name !== OURS)
  const all = [...IDLE, ...BUSY, ...HELD]
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours,
    peers: peersOf(samples, OURS, all),
    ratios: known(
      Object.fromEntries(
        names.flatMap((name) => [
          [`idle p50 of / ${name}`, ratio(samples, 'idleP50Ms', OURS, name)],
          [`busy p50 of / ${name}`, ratio(samples, 'busyP50Ms', OURS, name)],
        ]),
      ),
    ),
    counted: countedOf(samples),
    tables: [
      versusTable('Idle: one job, and the next when it has started', samples, IDLE),
      versusTable('At half of the steady rate, a commit every 20 ms', samples, BUSY),
      versusTable('Enqueued in a transaction that stays open for a second', samples, HELD),
      versusTable('Counted, per job of all three', samples, COUNTED),
    ],
    plots: [
      {
        name: 'idle',
        title: 'From commit to the start of the handler, worker idle',
        kind: 'bars',
        xLabel: '',
        yLabel: 'ms',
        series: [
          { name: 'p50', points: pointsOf(samples, 'idleP50Ms') },
          { name: 'p99', points: pointsOf(samples, 'idleP99Ms') },
        ],
      },
    ],
    targets: targets.filter(({ is }) => Number.isFinite(is)),
    contenders: contest.contenders,
    missing: contest.missing,
  }
}

export const scenario: Scenario = {
  name: 'latency',
  title: 'from the commit of an enqueue to the start of the handler',
  how:
    'A producer and a worker, each a process of its own. The clock starts when COMMIT is sent, so the flush of the ' +
    'commit is in the figure; what a flush takes on this disk (8 kB and fdatasync) stands beside it. BullMQ has no ' +
    'transactions: there the clock starts with its call. The steady rate is what goes through while a producer keeps ' +
    '2,000 jobs ahead of the worker; each contender is measured at half of its own.',
  run,
}
