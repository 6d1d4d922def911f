// Enqueue and work at once for a while: the rate that is kept, and whether jobs wait longer and longer.

import { startChild } from '../kit/child.ts'
import { clientOf, counting, perJob } from '../kit/counted.ts'
import { interleaved, median, medians, percentile, spreads } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { rowlockOn } from '../ours/database.ts'
import type { Seen, WorkerChildOptions } from '../ours/worker-child.ts'

const CHILD = new URL('../ours/worker-child.ts', import.meta.url)
const PER_CALL = 100
/** How often the age of the queue is looked at. */
const LOOK_MS = 500

interface Pace {
  readonly name: string
  /** Jobs a second that are enqueued. Undefined: as fast as it goes, while fewer than this many wait. */
  readonly perSecond?: number
  readonly atMostWaiting?: number
}

/** One producer, one worker, so many seconds. */
async function keep(server: BenchServer, pace: Pace, seconds: number): Promise<Figures> {
  const url = await rowlockOn(server, 'steady')
  const options: WorkerChildOptions = { url, queues: { default: { concurrency: 200, prefetch: 100 } } }
  const [producer, consumer] = await Promise.all([startChild(CHILD), startChild(CHILD)])
  const judge = await clientOf(url)
  try {
    await consumer.ask('start', options)
    await producer.ask('enqueue', { url, calls: 1, jobsPerCall: PER_CALL })
    await consumer.ask('untilSeen', PER_CALL)
    await consumer.ask('look')
    const count = await counting(server, 'steady')
    const began = performance.now()
    const fed = producer.ask<number>('feed', { url, jobsPerCall: PER_CALL, seconds, ...pace })
    const ages: { at: number; ageMs: number }[] = []
    while (performance.now() - began < seconds * 1000) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      const { rows } = await judge.query(
        `select coalesce(extract(epoch from clock_timestamp() - min(available_at)) * 1000, 0)::float8 as age
           from rowlock.waiting`,
      )
      ages.push({ at: (performance.now() - began) / 1000, ageMs: rows[0].age })
    }
    const inTime = await consumer.ask<Seen>('look')
    const took = (performance.now() - began) / 1000
    const { value: enqueued } = await fed
    await consumer.ask('untilSeen', enqueued - inTime.value.jobs)
    await consumer.ask('stop')
    await judge.end()
    await count.mark()
    await Promise.all([producer.end(), consumer.end()])
    const cost = perJob(await count.done(), enqueued)
    return {
      enqueuedPerSecond: enqueued / seconds,
      perSecond: inTime.value.jobs / took,
      ageGrowthMsPerSecond: slope(ages),
      ageP50Ms: median(ages.map(({ ageMs }) => ageMs)),
      latencyP50Ms: percentile(inTime.value.latenciesMs, 0.5),
      latencyP99Ms: percentile(inTime.value.latenciesMs, 0.99),
      ...cost,
    }
  } finally {
    await Promise.all([producer.end(), consumer.end(), judge.end().catch(() => {})])
    await server.drop('steady')
  }
}

/** Least squares: by how much the age grows in a second. */
function slope(points: readonly { at: number; ageMs: number }[]): number {
  const meanX = points.reduce((sum, { at }) => sum + at, 0) / points.length
  const meanY = points.reduce((sum, { ageMs }) => sum + ageMs, 0) / points.length
  const above = points.reduce((sum, { at, ageMs }) => sum + (at - meanX) * (ageMs - meanY), 0)
  return above / points.reduce((sum, { at }) => sum + (at - meanX) ** 2, 0)
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const seconds = bench.quick ? 6 : 60
  const full: Pace = { name: 'as fast as it goes', atMostWaiting: 5_000 }
  const first = await keep(server, full, Math.max(5, seconds / 6))
  const steady = Math.floor(first.perSecond! / PER_CALL) * PER_CALL
  bench.say(`as fast as it goes: ${Math.round(first.perSecond!)} a second`)
  const half: Pace = { name: 'at half of that', perSecond: Math.max(PER_CALL, steady / 2) }
  const samples = await interleaved(
    bench.rounds,
    [full, half],
    (pace) => keep(server, pace, seconds),
    undefined,
    bench.budgetMs,
  )
  const [most, calm] = [full, half].map(({ name }) => medians(samples.get(name)!)) as [Figures, Figures]
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours: most,
    peers: {},
    ratios: {},
    counted: { rowlock: { pgCpuUs: most.pgCpuUs!, walBytes: most.walBytes!, statements: most.statements! } },
    targets: [
      {
        what: 'at half of the rate: growth of the age of the queue, ms a second',
        is: calm.ageGrowthMsPerSecond!,
        atMost: 1,
      },
    ],
    tables: [
      {
        title: `${seconds} s of enqueues (${PER_CALL} a call) and work at once, one process each`,
        columns: [
          'pace',
          'enqueued a second',
          'worked a second',
          'age of the queue grows by, ms a second',
          'enqueue to start, p50, ms',
          'p99, ms',
          'PostgreSQL CPU, µs a job',
          'WAL, bytes a job',
        ],
        rows: [full, half].map(({ name }) => {
          const all = spreads(samples.get(name)!)
          return [
            name,
            all.enqueuedPerSecond!,
            all.perSecond!,
            all.ageGrowthMsPerSecond!,
            all.latencyP50Ms!,
            all.latencyP99Ms!,
            all.pgCpuUs!,
            all.walBytes!,
          ]
        }),
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'steady',
  title: 'enqueue and work at once, for a minute',
  how: [
    'A producer enqueues a hundred jobs a call; a worker in a process of its own runs handlers that do nothing,',
    'history kept. First as fast as it goes, while fewer than 5,000 jobs wait; then at half of the rate that a first',
    'run kept. The age of the queue is that of its oldest waiting job, looked at every half second; its growth is the',
    'slope of all looks.',
  ].join('\n'),
  rounds: 3,
  run,
}
