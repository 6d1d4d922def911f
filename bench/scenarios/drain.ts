// How fast waiting jobs are run to their end, and what each costs, beside the peers.

import { interleaved } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import {
  COUNTED,
  countedOf,
  known,
  peersOf,
  picked,
  pointsOf,
  ratio,
  type Samples,
  versusTable,
} from '../kit/versus.ts'
import { Contest } from '../peers/contest.ts'
import { drained } from '../peers/drained.ts'
import { type Entry, entries } from '../peers/roster.ts'

const OURS = 'rowlock'
const MAIN = ['rowlock', 'rowlock-no-history', 'server-loop', 'graphile', 'pg-boss', 'bullmq-redis']
const FAST = [
  ...MAIN,
  'rowlock-full',
  'graphile-large-queue',
  'rowlock-loop',
  'pg-boss-work',
  'bullmq-redis-aof',
  'bullmq-postgres',
]
const AS_THEY_COME = ['rowlock', 'graphile', 'pg-boss', 'bullmq-redis', 'bullmq-postgres'].map(
  (name) => `${name}-default`,
)
const IN_TWO = ['rowlock', 'rowlock-no-history', 'graphile', 'pg-boss', 'pg-boss-work', 'bullmq-redis']

/** What is to be reached: ours, theirs, how many times as fast. */
const BOUNDS: readonly (readonly [ours: string, theirs: string, atLeast: number, stretch?: true])[] = [
  ['rowlock', 'graphile', 2.5],
  ['rowlock', 'pg-boss', 2.5],
  ['rowlock', 'bullmq-redis', 4],
  ['rowlock-no-history', 'graphile', 3.5],
  ['rowlock', 'server-loop', 0.85, true],
]
const REPORTED = [
  'rowlock-full',
  'graphile-large-queue',
  'rowlock-loop',
  'pg-boss-work',
  'bullmq-redis-aof',
  'bullmq-postgres',
] as const

async function measure(
  bench: Bench,
  contest: Contest,
  among: readonly Entry[],
  jobs: number,
  processes: number,
): Promise<Samples> {
  const one = async (entry: Entry, round: number): Promise<Figures> => {
    const figures = await drained(contest, entry, { jobs, processes })
    bench.say(`  ${round + 1} ${entry.name} × ${processes}: ${Math.round(figures.perSecond!)} jobs/s`)
    return figures
  }
  return interleaved(bench.rounds, among, one, (entry, error) => contest.miss(entry, error), bench.budgetMs)
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const jobs = bench.quick ? 10_000 : 100_000
  const contest = new Contest(bench)
  // A trial leaves out who would take most of its two minutes.
  const names = bench.quick ? MAIN : [...FAST, ...AS_THEY_COME]
  const there = await contest.present(entries(bench.among ?? names))
  const alone = await measure(bench, contest, there, jobs, 1)
  const two = bench.quick
    ? new Map()
    : await measure(
        bench,
        contest,
        there.filter(({ name }) => IN_TWO.includes(name)),
        jobs,
        2,
      )
  const all = [
    ...BOUNDS.map(([ours, theirs]) => [ours, theirs] as const),
    ...REPORTED.map((n) => [OURS, n] as const),
  ]
  const ratios = known(
    Object.fromEntries(
      all.map(([ours, theirs]) => [
        ours === OURS ? theirs : `${ours} / ${theirs}`,
        ratio(alone, 'perSecond', ours, theirs),
      ]),
    ),
  )
  const figures = ['perSecond', ...COUNTED]
  return {
    rounds: Math.min(...[...alone.values()].map(({ length }) => length)),
    ours: picked(alone.get(OURS), ['perSecond']),
    peers: peersOf(alone, OURS, ['perSecond']),
    ratios,
    counted: countedOf(alone),
    tables: [
      versusTable(`${jobs.toLocaleString('en-US')} no-op jobs, one process`, alone, figures),
      ...(two.size > 0 ? [versusTable('The same by two processes', two, figures)] : []),
    ],
    plots: [
      {
        name: 'rate',
        title: 'Jobs run to their end, one process',
        kind: 'bars',
        xLabel: '',
        yLabel: 'jobs/s, median of the rounds',
        series: [{ name: 'jobs/s', points: pointsOf(alone, 'perSecond') }],
      },
      {
        name: 'cpu',
        title: 'CPU time of a job, from claim to completion',
        kind: 'bars',
        xLabel: '',
        yLabel: 'µs a job: PostgreSQL (or Redis), and Node.js',
        series: [
          { name: 'server', points: [...pointsOf(alone, 'pgCpuUs'), ...pointsOf(alone, 'redisCpuUs')] },
          { name: 'Node.js', points: pointsOf(alone, 'nodeCpuUs') },
        ],
      },
    ],
    targets: BOUNDS.flatMap(([ours, theirs, atLeast, stretch]): Target[] => {
      const is = ratio(alone, 'perSecond', ours, theirs)
      const what = `${ours} by ${theirs}, jobs/s`
      return Number.isFinite(is) ? [{ what, is, atLeast, ...(stretch && { stretch }) }] : []
    }),
    contenders: contest.contenders,
    missing: contest.missing,
  }
}

export const scenario: Scenario = {
  name: 'drain',
  title: '100,000 waiting no-op jobs are run to their end by one process, then by two',
  how:
    'Jobs `{ n }` are enqueued, tables are vacuumed and analyzed, and a checkpoint is made; then a process begins ' +
    'to work, which is timed from its first statement until no job is left that is not finished, as a look at the ' +
    'tables says. Handlers do nothing. `graphile`, `pg-boss` and `bullmq-redis` are each in the fastest ' +
    'configuration that their documentation has, `rowlock` as docs/performance.md has it; names in `-default` are as ' +
    'they come. `graphile-large-queue` is faster than its documentation knows; `rowlock-full` has jobs as users ' +
    'write them. Slow ones get fewer jobs; all figures are per job. Dead tuples are updates and deletes. graphile ' +
    'keeps no history, `rowlock` and `pg-boss` do. The server writes its WAL into files that are there already, as ' +
    'one that has run for a while does: a new one stops everybody while it makes each of them.',
  run,
}
