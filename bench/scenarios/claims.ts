// The textbook's ways to take a job, and ours, under the same workers: what runs twice, what waits, what is forgotten.

import { clientOf } from '../kit/counted.ts'
import { interleaved, medians } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { type Held, SHAPES, type Shape } from '../ours/textbook.ts'

const WORKERS = [1, 2, 4, 8, 16]
const WORK_MS = 1
const IDLE_MS = 1
const GIVE_UP_MS = 120_000
/** With failures, the first run of every tenth job ends badly. */
const isBad = (id: string): boolean => Number(id) % 10 === 0

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

interface Arena {
  readonly shape: Shape
  readonly workers: number
  readonly failing: boolean
}

/**
 * One run: workers take, do 1 ms of work, write a line into the ledger over a connection of their own, and end, until
 * nothing is left. The ledger knows what ran; the table of jobs only what was written to it.
 */
async function play(server: BenchServer, arena: Arena, jobs: number): Promise<Figures> {
  const { shape, workers, failing } = arena
  const url = await shape.prepare(server, 'claims', jobs)
  const judge = await clientOf(url)
  await judge.query('create table ledger (job_id bigint not null, ended_well boolean not null)')
  let asked: Promise<number> | undefined
  const left = (): Promise<number> => {
    asked ??= judge.query(shape.left).then(({ rows }) => {
      asked = undefined
      return rows[0].n
    })
    return asked
  }
  const failed = new Set<string>()
  const tally = { takes: 0, waits: 0, remaining: jobs, isOver: false }
  const began = performance.now()

  const work = async (): Promise<void> => {
    const taker = await shape.taker(url)
    const pen = await clientOf(url)
    const run = async (held: Held): Promise<void> => {
      await sleep(WORK_MS)
      const isWell = !(failing && isBad(held.id) && !failed.has(held.id))
      if (!isWell) failed.add(held.id)
      await pen.query({ name: 'line', text: 'insert into ledger values ($1, $2)', values: [held.id, isWell] })
      await held.end(isWell)
    }
    while (!tally.isOver) {
      const taken = await taker.take()
      tally.takes++
      for (const held of taken) await run(held)
      if (taken.length > 0) continue
      await sleep(IDLE_MS)
      if ((await left()) === 0) tally.isOver = true
      else if (performance.now() - began > GIVE_UP_MS)
        throw new Error(`${shape.name} does not come to an end`)
    }
    tally.waits += taker.lockWaits()
    await taker.close()
    await pen.end()
  }
  await Promise.all(Array.from({ length: workers }, work))

  const seconds = (performance.now() - began) / 1000
  const { rows } = await judge.query(
    `select count(*) filter (where runs > 1)::integer as twice, count(*)::integer as known
       from (select count(*) filter (where ended_well) as runs from ledger group by job_id) as each`,
  )
  const recorded = (await judge.query(shape.failures)).rows[0].n as number
  await judge.end()
  await server.drop('claims')
  if (rows[0].known !== jobs) throw new Error(`${shape.name}: ${rows[0].known} of ${jobs} jobs ran`)
  return {
    perSecond: jobs / seconds,
    ranTwice: rows[0].twice,
    waitsPerTake: tally.waits / tally.takes,
    takesPerJob: tally.takes / jobs,
    failures: failed.size,
    failuresOnRecord: recorded,
  }
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const jobs = bench.quick ? 60 : 2_000
  const counts = bench.quick ? [1, 4, 16] : WORKERS
  // A trial fails jobs of four workers only.
  const countsOf = (failing: boolean): number[] => (failing && bench.quick ? [4] : counts)
  const arenas = [false, true].flatMap((failing) =>
    countsOf(failing).flatMap((workers) =>
      SHAPES.map((shape) => ({ name: `${shape.name}|${workers}|${failing}`, shape, workers, failing })),
    ),
  )
  const samples = await interleaved(
    bench.rounds,
    arenas,
    (arena) => play(server, arena, jobs),
    undefined,
    bench.budgetMs,
  )
  const of = (shape: Shape, workers: number, failing: boolean): Figures =>
    medians(samples.get(`${shape.name}|${workers}|${failing}`) ?? [])
  const most = counts.at(-1)!
  const targets: Target[] = []
  const worst = (shape: Shape, figure: string): number =>
    Math.max(
      ...[...samples].flatMap(([name, all]) =>
        name.startsWith(`${shape.name}|`) ? all.map((each) => each[figure] ?? Number.NaN) : [],
      ),
    )
  for (const shape of SHAPES) {
    const twice = worst(shape, 'ranTwice')
    if (shape.name === 'naive') targets.push({ what: 'naive: jobs that ran twice', is: twice, atLeast: 1 })
    if (!shape.name.startsWith('rowlock')) continue
    targets.push({ what: `${shape.name}: jobs that ran twice`, is: twice, atMost: 0 })
    const failing = of(shape, countsOf(true).at(-1)!, true)
    const forgotten = failing.failures! - failing.failuresOnRecord!
    targets.push({ what: `${shape.name}: failures forgotten`, is: forgotten, atMost: 0 })
  }
  return {
    rounds: Math.min(...[...samples.values()].map(({ length }) => length)),
    ours: of(SHAPES.find(({ name }) => name.startsWith('rowlock'))!, most, false),
    peers: Object.fromEntries(
      SHAPES.filter(({ name }) => !name.startsWith('rowlock')).map((s) => [s.name, of(s, most, false)]),
    ),
    ratios: {},
    counted: Object.fromEntries(
      SHAPES.map((s) => [
        s.name,
        { waitsPerTake: of(s, most, false).waitsPerTake!, ranTwice: worst(s, 'ranTwice') },
      ]),
    ),
    targets,
    contenders: SHAPES.map(({ name, how }) => ({ name, configuration: how })),
    tables: [false, true].map((failing) => ({
      title: failing ? 'With a tenth of the jobs failing once' : 'All jobs end well',
      columns: [
        'shape',
        'workers',
        'jobs a second',
        'ran twice',
        'lock waits a take',
        'takes a job',
        ...(failing ? ['failures', 'on record'] : []),
      ],
      rows: SHAPES.flatMap((shape) =>
        countsOf(failing).map((workers) => {
          const each = of(shape, workers, failing)
          const first = [each.perSecond!, each.ranTwice!, each.waitsPerTake!, each.takesPerJob!]
          const last = failing ? [each.failures!, each.failuresOnRecord!] : []
          return [shape.name, workers, ...first, ...last]
        }),
      ),
    })),
    plots: [
      {
        name: 'rate',
        title: `Jobs a second, ${WORK_MS} ms of work each`,
        kind: 'lines' as const,
        xLabel: 'workers',
        yLabel: 'jobs a second',
        xScale: 'log' as const,
        series: SHAPES.map((shape) => ({
          name: shape.name,
          points: counts.map((x) => ({ x, y: of(shape, x, false).perSecond! })),
        })),
      },
      {
        name: 'waits',
        title: 'Waits for a lock, for each time a worker asked for a job',
        kind: 'lines' as const,
        xLabel: 'workers',
        yLabel: 'waits above 1 ms a take',
        xScale: 'log' as const,
        series: SHAPES.map((shape) => ({
          name: shape.name,
          points: counts.map((x) => ({ x, y: of(shape, x, false).waitsPerTake! })),
        })),
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'claims',
  title: 'the textbook’s ways to take a job, 1 to 16 workers: what runs twice, what waits, what is forgotten',
  how: [
    'Every shape has the same jobs, the same work (1 ms) and the same ledger: a line for each run, written by the',
    'handler over a connection of its own. A job ran twice when two of its runs ended well. Lock waits are those that',
    'lasted longer than a millisecond, told by the server (`log_lock_waits` with a `deadlock_timeout` of 1 ms).',
    'Workers are loops of one process, each with its own connection, one job at a time. In the second table the first',
    'run of every tenth job fails.',
  ].join('\n'),
  rounds: 3,
  run,
}
