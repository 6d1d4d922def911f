// What large inputs cost: WAL against their own size, and the memory of the process that handles them.

import { startChild } from '../kit/child.ts'
import { counting } from '../kit/counted.ts'
import { interleaved, medians } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { rowlockOn } from '../ours/database.ts'
import type { Batches, Seen, WorkerChildOptions } from '../ours/worker-child.ts'

const CHILD = new URL('../ours/worker-child.ts', import.meta.url)
const SIZES = [1_000, 3_000, 10_000, 100_000, 990_000]
const CONCURRENCY = 10

const named = (bytes: number): string =>
  bytes < 1_000_000 ? `${bytes / 1000} kB` : `${bytes / 1_000_000} MB`

/** Enqueue, then handle, inputs of one size; so many bytes in all, whatever the size. */
async function pass(server: BenchServer, inputBytes: number, totalBytes: number): Promise<Figures> {
  const url = await rowlockOn(server, 'payload')
  const jobs = Math.max(20, Math.round(totalBytes / inputBytes))
  const jobsPerCall = Math.max(1, Math.min(500, Math.floor(1_000_000 / inputBytes)))
  const calls = Math.ceil(jobs / jobsPerCall)
  const batches: Batches = { url, calls, jobsPerCall, inputBytes }
  const options: WorkerChildOptions = {
    url,
    queues: { default: { concurrency: CONCURRENCY } },
    worker: { heartbeat: '10s' },
    reads: true,
  }
  try {
    const producer = await startChild(CHILD)
    const consumer = await startChild(CHILD)
    // One stretch without a checkpoint within: pages that are written in full count once, as in a busy server.
    const count = await counting(server, 'payload')
    const began = await walOf(server)
    const { value: bytes } = await producer.ask<number>('enqueue', batches)
    await producer.end()
    const stored = await walOf(server)
    await consumer.ask('start', options)
    await consumer.ask('untilSeen', calls * jobsPerCall)
    await consumer.ask('stop')
    await count.mark()
    const worked = await walOf(server)
    const { value: seen } = await consumer.ask<Seen>('look')
    await consumer.end()
    const counted = await count.done()
    return {
      walOfEnqueue: (stored - began) / bytes,
      walOfWork: (worked - stored) / bytes,
      wal: (worked - began) / bytes,
      peakMb: seen.peakRssBytes / 1e6,
      pgCpuUs: counted.pgCpuUs / (calls * jobsPerCall),
    }
  } finally {
    await server.drop('payload')
  }
}

async function walOf(server: BenchServer): Promise<number> {
  const { rows } = await server.admin.query(
    `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as bytes`,
  )
  return rows[0].bytes
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const totalBytes = bench.quick ? 2_000_000 : 100_000_000
  const contenders = [
    ...SIZES.map((bytes) => ({ name: named(bytes), bytes, times: 1 })),
    // The same inputs, four times as many: memory must follow how many run at once, not how many there are.
    { name: `${named(SIZES.at(-1)!)}, 4 × as many`, bytes: SIZES.at(-1)!, times: 4 },
  ]
  const samples = await interleaved(
    bench.rounds,
    contenders,
    async ({ name, bytes, times }) => {
      // So many that the worker's own rows do not count.
      const least = bytes >= 100_000 ? Math.max(bytes * 20, 6_000_000) : 0
      const figures = await pass(server, bytes, Math.max(totalBytes, least) * times)
      bench.say(`${name}: WAL ${figures.wal!.toFixed(2)} × the input, peak ${Math.round(figures.peakMb!)} MB`)
      return figures
    },
    undefined,
    bench.budgetMs,
  )
  const of = (name: string): Figures => medians(samples.get(name)!)
  const largest = named(SIZES.at(-1)!)
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours: of(largest),
    peers: {},
    ratios: {},
    counted: Object.fromEntries(contenders.map(({ name }) => [name, of(name)])),
    targets: [
      ...SIZES.filter((bytes) => bytes >= 100_000).map((bytes) => ({
        what: `WAL of the whole life against the input, ${named(bytes)}`,
        is: of(named(bytes)).wal!,
        atMost: 1.3,
      })),
      {
        what: `peak memory, four times as many inputs of ${largest}`,
        is: of(`${largest}, 4 × as many`).peakMb! / of(largest).peakMb!,
        atMost: 1.5,
      },
    ],
    tables: [
      {
        title: `Inputs of one size, ${CONCURRENCY} handlers at once`,
        columns: [
          'input',
          'WAL, × the input',
          'of the enqueue',
          'of claim and finish',
          'worker’s peak, MB',
          'PostgreSQL CPU, µs a job',
        ],
        rows: contenders.map(({ name }) => {
          const each = of(name)
          return [name, each.wal!, each.walOfEnqueue!, each.walOfWork!, each.peakMb!, each.pgCpuUs!]
        }),
      },
    ],
    plots: [
      {
        name: 'wal',
        title: 'WAL of the whole life of a job, against its input',
        kind: 'lines',
        xLabel: 'input, bytes',
        yLabel: 'WAL ÷ input',
        xScale: 'log',
        series: [{ name: 'rowlock', points: SIZES.map((x) => ({ x, y: of(named(x)).wal! })) }],
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'payload',
  title: 'inputs of 1 kB to 1 MB: WAL against their size, memory of the worker',
  how: [
    'One process enqueues inputs of random text, which does not compress, some 1 MB a call; then a worker of its own',
    'process handles them, and each handler reads its input. WAL is that of the server from a checkpoint on, pages',
    'written in full included. The peak of memory is the resident set of the worker’s process, looked at every sixteen',
    'jobs and at the end.',
  ].join('\n'),
  rounds: 3,
  run,
}
