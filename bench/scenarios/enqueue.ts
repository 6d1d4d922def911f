// What it costs to put jobs in, in bulk and one by one, beside the peers and beside plain inserts.

import { interleaved } from '../kit/rounds.ts'
import type { Bench, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
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
import { enqueued, type Way } from '../peers/enqueued.ts'
import { type Entry, entries } from '../peers/roster.ts'

const OURS = 'rowlock'
const MAIN = ['rowlock', 'graphile', 'pg-boss', 'bullmq-redis', 'insert-select', 'copy']
const MORE = ['bullmq-redis-aof', 'bullmq-postgres']
/** These are no queues: nobody enqueues one by one into them. */
const REFERENCES = ['insert-select', 'copy']

const BULK: readonly (readonly [theirs: string, atLeast: number])[] = [
  ['graphile', 2.5],
  ['pg-boss', 3],
  ['insert-select', 0.8],
]

async function measure(bench: Bench, contest: Contest, among: readonly Entry[], way: Way): Promise<Samples> {
  const most = { bulk: bench.quick ? 20_000 : 100_000, ones: bench.quick ? 2_000 : 20_000 }[way]
  return interleaved(
    bench.rounds,
    among,
    async (entry, round) => {
      const figures = await enqueued(contest, entry, way, most)
      bench.say(`  ${round + 1} ${entry.name}, ${way}: ${Math.round(figures.perSecond!)} jobs/s`)
      return figures
    },
    (entry, error) => contest.miss(entry, error),
    bench.budgetMs / 2,
  )
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const contest = new Contest(bench)
  const there = await contest.present(entries(bench.among ?? (bench.quick ? MAIN : [...MAIN, ...MORE])))
  const bulk = await measure(bench, contest, there, 'bulk')
  const queues = there.filter(({ name }) => !REFERENCES.includes(name))
  const ones = await measure(bench, contest, queues, 'ones')
  const bulkBy = (theirs: string): number => ratio(bulk, 'perSecond', OURS, theirs)
  const onesBy = (theirs: string): number => ratio(ones, 'perSecond', OURS, theirs)
  const names = there.map(({ name }) => name).filter((name) => name !== OURS)
  const targets: Target[] = [
    ...BULK.map(([theirs, atLeast]) => ({
      what: `in bulk, by ${theirs}, jobs/s`,
      is: bulkBy(theirs),
      atLeast,
    })),
    { what: 'one by one, by graphile, jobs/s', is: onesBy('graphile'), atLeast: 1.5 },
  ]
  return {
    rounds: Math.min(...[...bulk.values(), ...ones.values()].map(({ length }) => length)),
    ours: {
      bulkPerSecond: picked(bulk.get(OURS), ['perSecond']).perSecond ?? Number.NaN,
      onesPerSecond: picked(ones.get(OURS), ['perSecond']).perSecond ?? Number.NaN,
    },
    peers: Object.fromEntries(
      Object.entries(peersOf(bulk, OURS, ['perSecond'])).map(([name, { perSecond }]) => {
        const one = picked(ones.get(name), ['perSecond']).perSecond
        return [name, { bulkPerSecond: perSecond!, ...(one !== undefined && { onesPerSecond: one }) }]
      }),
    ),
    ratios: known(
      Object.fromEntries(
        names.flatMap((name) => [
          [`bulk / ${name}`, bulkBy(name)],
          [`ones / ${name}`, onesBy(name)],
        ]),
      ),
    ),
    counted: countedOf(bulk),
    tables: [
      versusTable('1,000 jobs a call, one client', bulk, ['perSecond', ...COUNTED]),
      versusTable('One job a call and a transaction, 16 clients', ones, ['perSecond', ...COUNTED]),
    ],
    plots: [
      {
        name: 'bulk',
        title: 'Jobs enqueued, 1,000 a call',
        kind: 'bars',
        xLabel: '',
        yLabel: 'jobs/s, median of the rounds',
        series: [{ name: 'jobs/s', points: pointsOf(bulk, 'perSecond') }],
      },
      {
        name: 'ones',
        title: 'Jobs enqueued one a transaction, 16 clients',
        kind: 'bars',
        xLabel: '',
        yLabel: 'jobs/s, median of the rounds',
        series: [{ name: 'jobs/s', points: pointsOf(ones, 'perSecond') }],
      },
    ],
    targets: targets.filter(({ is }) => Number.isFinite(is)),
    contenders: contest.contenders,
    missing: contest.missing,
  }
}

export const scenario: Scenario = {
  name: 'enqueue',
  title: 'jobs are put in, 1,000 a call and one a transaction from 16 clients',
  how:
    'Jobs `{ n }` without options, from one process, after as many as make plans and code warm. Beside them the same ' +
    'rows by `insert … select` from the same JSON document into a copy of the table with the same indexes, and by ' +
    '`COPY` into a bare copy: the least that storing them costs. What a queue has above that is checking, keys, ' +
    'waking workers, and answering ids.',
  run,
}
