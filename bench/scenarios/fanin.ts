// Many worker processes on one queue: what they take from each other.

import { startChild } from '../kit/child.ts'
import { clientOf, counting, perJob } from '../kit/counted.ts'
import { interleaved, medians, spreads } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { fillWaiting, rowlockOn } from '../ours/database.ts'
import type { Looped, LoopOptions } from '../ours/loop-child.ts'

const PROCESSES = [1, 2, 4, 8, 16]
const CHILD = new URL('../ours/loop-child.ts', import.meta.url)
/** One claim in twenty tells its plans: enough to count, too few to matter. */
const SAMPLED = 0.05

async function drain(server: BenchServer, processes: number, jobs: number, batch: number): Promise<Figures> {
  const url = await rowlockOn(server, 'fanin')
  const filler = await clientOf(url)
  await fillWaiting(filler, jobs)
  await filler.query('vacuum analyze rowlock.waiting')
  await filler.end()
  const options: LoopOptions = { url, batch, sampled: SAMPLED }
  const children = await Promise.all(Array.from({ length: processes }, () => startChild(CHILD)))
  try {
    await Promise.all(children.map((child) => child.ask('prepare', options)))
    const counted = await counting(server, 'fanin')
    const began = Date.now()
    const loops = await Promise.all(children.map((child) => child.ask<Looped>('drain', options)))
    await counted.mark()
    const sum = (of: (loop: Looped) => number): number => loops.reduce((all, { value }) => all + of(value), 0)
    const done = sum((loop) => loop.jobs)
    if (done !== jobs) throw new Error(`${done} of ${jobs} jobs were finished`)
    const seconds = (Math.max(...loops.map(({ value }) => value.lastEndAtMs)) - began) / 1000
    await Promise.all(children.map((child) => child.end()))
    const cost = perJob(await counted.done(), jobs)
    return {
      perSecond: jobs / seconds,
      skippedPerClaim:
        sum((loop) => loop.skipped) /
        Math.max(
          1,
          sum((loop) => loop.sampled),
        ),
      emptyClaims: sum((loop) => loop.empty) / sum((loop) => loop.claims),
      ...cost,
    }
  } finally {
    await Promise.all(children.map((child) => child.end()))
    await server.drop('fanin')
  }
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const [jobs, batch] = bench.quick ? [4_000, 50] : [100_000, 100]
  const counts = bench.quick ? [1, 2, 4, 8] : PROCESSES
  const contenders = counts.map((processes) => ({ name: String(processes), processes }))
  const samples = await interleaved(
    bench.rounds,
    contenders,
    async ({ processes }) => {
      const figures = await drain(server, processes, jobs, batch)
      bench.say(`${processes} processes: ${Math.round(figures.perSecond!)} jobs a second`)
      return figures
    },
    undefined,
    bench.budgetMs,
  )
  const of = (count: number): Figures => medians(samples.get(String(count))!)
  const rates = counts.map((count) => of(count).perSecond!)
  const best = Math.max(...rates)
  const most = counts.at(-1)!
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours: of(most),
    peers: {},
    ratios: { [`${most} processes against the best`]: rates.at(-1)! / best },
    counted: Object.fromEntries(
      counts.map((count) => {
        const { perSecond: _, ...rest } = of(count)
        return [`${count} processes`, rest]
      }),
    ),
    targets: [
      { what: `rate of ${most} processes against the best number`, is: rates.at(-1)! / best, atLeast: 0.75 },
      {
        what: `PostgreSQL CPU a job, ${most} processes against one`,
        is: of(most).pgCpuUs! / of(counts[0]!).pgCpuUs!,
        atMost: 1 / 0.75,
        stretch: true,
      },
    ],
    tables: [
      {
        title: `${jobs.toLocaleString('en-US')} jobs, ${batch} a claim`,
        columns: [
          'processes',
          'jobs a second',
          'rows found locked, a claim',
          'claims that found nothing',
          'PostgreSQL CPU, µs a job',
          'buffers a job',
          'WAL, bytes a job',
        ],
        rows: counts.map((count) => {
          const each = of(count)
          return [
            count,
            spreads(samples.get(String(count))!).perSecond!,
            each.skippedPerClaim!,
            each.emptyClaims!,
            each.pgCpuUs!,
            each.buffers!,
            each.walBytes!,
          ]
        }),
      },
    ],
    plots: [
      {
        name: 'rate',
        title: 'Jobs a second of so many processes on one queue',
        kind: 'lines',
        xLabel: 'processes',
        yLabel: 'jobs a second',
        xScale: 'log',
        series: [{ name: 'rowlock', points: counts.map((x, n) => ({ x, y: rates[n]! })) }],
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'fanin',
  title: '1 to 16 worker processes on one queue',
  how: [
    'Each process claims and finishes by the worker’s own verbs, without handlers, over one connection, as fast as it',
    'can; all begin at once on a queue that is full. The rate counts to the commit of the last finish of any of them.',
    'Rows found locked are those that the scan of a claim met and `skip locked` passed by, from the plans of one claim',
    'in twenty (`auto_explain`).',
  ].join('\n'),
  run,
}
