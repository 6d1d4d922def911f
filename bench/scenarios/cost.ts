// The whole life of a job, from the call that enqueues it to the commit of its completion: what it costs the server.

import { interleaved } from '../kit/rounds.ts'
import type { Bench, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import { COUNTED, countedOf, known, peersOf, picked, pointsOf, ratio, versusTable } from '../kit/versus.ts'
import { Contest } from '../peers/contest.ts'
import { drained } from '../peers/drained.ts'
import { entries } from '../peers/roster.ts'

const OURS = 'rowlock'
const MAIN = ['rowlock', 'rowlock-no-history', 'graphile', 'pg-boss']
const MORE = [
  'rowlock-full',
  'graphile-large-queue',
  'rowlock-default',
  'graphile-default',
  'pg-boss-work',
  'bullmq-postgres',
  'bullmq-redis',
]

async function run(bench: Bench): Promise<ScenarioResult> {
  const jobs = bench.quick ? 20_000 : 100_000
  const contest = new Contest(bench)
  const there = await contest.present(entries(bench.among ?? (bench.quick ? MAIN : [...MAIN, ...MORE])))
  const samples = await interleaved(
    bench.rounds,
    there,
    async (entry, round) => {
      const figures = await drained(contest, entry, { jobs, processes: 1, life: true })
      const cpuUs = figures.pgCpuUs ?? figures.redisCpuUs ?? Number.NaN
      bench.say(`  ${round + 1} ${entry.name}: ${cpuUs.toPrecision(3)} µs of the server a job`)
      return figures
    },
    (entry, error) => contest.miss(entry, error),
    bench.budgetMs,
  )
  const by = (figure: string, theirs: string, ours = OURS): number => ratio(samples, figure, ours, theirs)
  const targets: Target[] = [
    { what: 'PostgreSQL CPU by graphile', is: by('pgCpuUs', 'graphile'), atMost: 0.5 },
    { what: 'PostgreSQL CPU by graphile', is: by('pgCpuUs', 'graphile'), atMost: 0.4, stretch: true },
    { what: 'PostgreSQL CPU by pg-boss', is: by('pgCpuUs', 'pg-boss'), atMost: 0.3 },
    { what: 'WAL with history by graphile without', is: by('walBytes', 'graphile'), atMost: 1 },
  ]
  const names = there.map(({ name }) => name).filter((name) => name !== OURS)
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours: picked(samples.get(OURS), ['pgCpuUs', 'nodeCpuUs', 'walBytes']),
    peers: peersOf(samples, OURS, ['pgCpuUs', 'redisCpuUs', 'nodeCpuUs', 'walBytes']),
    // Below 1 is better here: a cost by a cost.
    ratios: known(
      Object.fromEntries(
        names.flatMap((name) => [
          [`cost of pgCpuUs / ${name}`, by('pgCpuUs', name)],
          [`cost of nodeCpuUs / ${name}`, by('nodeCpuUs', name)],
          [`cost of walBytes / ${name}`, by('walBytes', name)],
        ]),
      ),
    ),
    counted: countedOf(samples),
    tables: [versusTable('Per job, from the enqueue to the last commit', samples, COUNTED)],
    plots: [
      {
        name: 'cpu',
        title: 'CPU time of a whole life',
        kind: 'bars',
        xLabel: '',
        yLabel: 'µs a job: PostgreSQL (or Redis), and Node.js',
        series: [
          { name: 'server', points: [...pointsOf(samples, 'pgCpuUs'), ...pointsOf(samples, 'redisCpuUs')] },
          { name: 'Node.js', points: pointsOf(samples, 'nodeCpuUs') },
        ],
      },
      {
        name: 'wal',
        title: 'WAL of a whole life',
        kind: 'bars',
        xLabel: '',
        yLabel: 'bytes a job',
        series: [{ name: 'WAL', points: pointsOf(samples, 'walBytes') }],
      },
    ],
    targets: targets.filter(({ is }) => Number.isFinite(is)),
    contenders: contest.contenders,
    missing: contest.missing,
  }
}

export const scenario: Scenario = {
  name: 'cost',
  title: 'the whole life of a job: what it costs the server, Node.js and the disk',
  how:
    'Jobs `{ n }` are enqueued, 1,000 a call, and run to their end by one process, without a vacuum or a checkpoint ' +
    'between: what autovacuum does meanwhile is in the figures. Counted from before the first enqueue to after the ' +
    'last completion. Ratios are costs by costs: below 1 is better. PostgreSQL counts the checks of deferred foreign ' +
    "keys as statements, one a row: those are pg-boss's.",
  run,
}
