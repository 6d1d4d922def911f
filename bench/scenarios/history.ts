// Whether ten million ended jobs make the next ones dearer.

import { startChild } from '../kit/child.ts'
import { clientOf, counting, perJob } from '../kit/counted.ts'
import { interleaved, medians, spreads } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { fillFinished, fillWaiting, rowlockOn } from '../ours/database.ts'
import type { Looped, LoopOptions } from '../ours/loop-child.ts'

const CHILD = new URL('../ours/loop-child.ts', import.meta.url)
const BATCH = 250
/** Rows of one statement that fills history: a longer one would hold its snapshot for minutes. */
const FILL = 500_000

/** Drain what waits in a database that stays, over a loop of its own process. */
async function drain(server: BenchServer, database: string, url: string, jobs: number): Promise<Figures> {
  const filler = await clientOf(url)
  await fillWaiting(filler, jobs)
  await filler.query('vacuum analyze rowlock.waiting')
  await filler.query('vacuum rowlock.running')
  await filler.end()
  const child = await startChild(CHILD)
  try {
    const options: LoopOptions = { url, batch: BATCH }
    await child.ask('prepare', options)
    const count = await counting(server, database)
    const began = Date.now()
    const { value, nodeCpuUs } = await child.ask<Looped>('drain', options)
    await count.mark()
    await child.end()
    if (value.jobs !== jobs) throw new Error(`${value.jobs} of ${jobs} jobs were finished`)
    const cost = perJob(await count.done(), jobs)
    return { perSecond: (jobs / (value.lastEndAtMs - began)) * 1000, nodeCpuUs: nodeCpuUs / jobs, ...cost }
  } finally {
    await child.end()
  }
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const [ended, jobs] = bench.quick ? [200_000, 5_000] : [10_000_000, 100_000]
  const contenders = [
    { name: 'empty', database: 'history_empty', ended: 0 },
    { name: `${ended.toLocaleString('en-US')} ended`, database: 'history_full', ended },
  ]
  const urls = new Map<string, string>()
  for (const { name, database, ended: all } of contenders) {
    const url = await rowlockOn(server, database)
    urls.set(name, url)
    const filler = await clientOf(url)
    for (let left = all; left > 0; left -= FILL) {
      await fillFinished(filler, Math.min(left, FILL))
      bench.say(`${all - left + Math.min(left, FILL)} of ${all} ended jobs are there`)
    }
    await filler.query('vacuum analyze rowlock.finished')
    await filler.end()
  }
  try {
    const samples = await interleaved(
      bench.rounds,
      contenders,
      ({ name, database }) => drain(server, database, urls.get(name)!, jobs),
      undefined,
      bench.budgetMs,
    )
    const [empty, full] = contenders.map(({ name }) => medians(samples.get(name)!)) as [Figures, Figures]
    return {
      rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
      ours: full,
      peers: { empty },
      ratios: { rate: full.perSecond! / empty.perSecond!, pgCpu: empty.pgCpuUs! / full.pgCpuUs! },
      counted: { empty: counted(empty), full: counted(full) },
      targets: [
        { what: 'rate against an empty history', is: full.perSecond! / empty.perSecond!, atLeast: 0.95 },
        { what: 'buffers a job against an empty history', is: full.buffers! / empty.buffers!, atMost: 1.05 },
        { what: 'WAL a job against an empty history', is: full.walBytes! / empty.walBytes!, atMost: 1.05 },
      ],
      tables: [
        {
          title: `${jobs.toLocaleString('en-US')} jobs, ${BATCH} a claim, history kept`,
          columns: [
            'history',
            'jobs a second',
            'PostgreSQL CPU, µs a job',
            'buffers a job',
            'WAL, bytes a job',
            'dead rows a job',
          ],
          rows: contenders.map(({ name }) => {
            const all = spreads(samples.get(name)!)
            return [name, all.perSecond!, all.pgCpuUs!, all.buffers!, all.walBytes!, all.deadTuples!]
          }),
        },
      ],
    }
  } finally {
    for (const { database } of contenders) await server.drop(database)
  }
}

function counted({ pgCpuUs, buffers, walBytes, deadTuples }: Figures): Figures {
  return { pgCpuUs: pgCpuUs!, buffers: buffers!, walBytes: walBytes!, deadTuples: deadTuples! }
}

export const scenario: Scenario = {
  name: 'history',
  title: 'a drain with ten million ended jobs against one with none',
  how: [
    'Two databases of one server, one with ended jobs over the last week, one without. In turns each gets jobs, which',
    'a process claims and finishes by the worker’s own verbs, without handlers; history is kept.',
  ].join('\n'),
  needs: 'about 12 GB of disk below the system’s temporary folder, and some minutes to fill ten million rows',
  run,
}
