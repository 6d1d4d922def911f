// What a claim costs with so many jobs waiting, whatever they are: in its own line, in others, in other queues.

import type pg from 'pg'
import { median, percentile } from '../kit/rounds.ts'
import type { Bench, Figures, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { fillWaiting, rowlockOn } from '../ours/database.ts'
import { type Cost, Hand, type Wanted } from '../ours/hand.ts'

interface Case {
  readonly name: string
  readonly wanted?: Wanted
  /** How much dearer than the smallest it may be. */
  readonly atMost: number
  fill(client: pg.Client): Promise<void>
}

interface Measured {
  readonly cost: Cost
  readonly p50Ms: number
  readonly p95Ms: number
}

const DUE = 1_000
const TWENTY = Array.from({ length: 20 }, (_, n) => `k${n}`)
const CLAIMS = 50

const named = (n: number): string => (n >= 1_000_000 ? `${n / 1_000_000} million` : n.toLocaleString('en-US'))

function casesOf(quick: boolean): Case[] {
  const [many, most, queues] = quick ? [50_000, 100_000, 1_000] : [1_000_000, 10_000_000, 10_000]
  const due = (client: pg.Client) => fillWaiting(client, DUE)
  return [
    { name: `${named(DUE)} waiting`, atMost: 1, fill: due },
    { name: `${named(many)} waiting`, atMost: 1.3, fill: (client) => fillWaiting(client, many) },
    { name: `${named(most)} waiting`, atMost: 1.3, fill: (client) => fillWaiting(client, most) },
    {
      name: `${named(many)} of a higher priority, next year`,
      atMost: 1.3,
      async fill(client) {
        await fillWaiting(client, many, { priority: '10', available_at: `now() + interval '1 year'` })
        await due(client)
      },
    },
    {
      name: `${named(queues)} queues of 100`,
      atMost: 1.3,
      async fill(client) {
        await fillWaiting(client, queues * 100, { queue: `'queue ' || n % ${queues}` })
        await due(client)
      },
    },
    {
      name: `${named(many)} older ones of foreign kinds`,
      atMost: 1.3,
      async fill(client) {
        await fillWaiting(client, many, {
          kind: `'foreign' || n % 10`,
          available_at: `now() - interval '1 day'`,
        })
        await due(client)
      },
    },
    {
      name: `20 kinds here, ${named(DUE)} waiting`,
      atMost: 4,
      wanted: { kinds: TWENTY },
      fill: (client) => fillWaiting(client, DUE, { kind: `'k' || n % 20` }),
    },
  ]
}

async function measure(server: BenchServer, each: Case, rounds: number): Promise<Measured> {
  const url = await rowlockOn(server, 'backlog')
  const hand = await Hand.on(url)
  try {
    await each.fill(hand.client)
    await hand.client.query('vacuum analyze rowlock.waiting')
    const costs: Cost[] = []
    const tookMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      costs.push(await hand.costOfClaim(each.wanted, CLAIMS / 2))
      for (let n = 0; n < CLAIMS; n++) {
        const began = performance.now()
        const jobs = await hand.claim(each.wanted)
        tookMs.push(performance.now() - began)
        await hand.complete(jobs)
      }
      // The same number of jobs for the next round, and nothing dead in the way.
      await fillWaiting(hand.client, CLAIMS * 10, each.wanted === undefined ? {} : { kind: `'k' || n % 20` })
      await hand.client.query('vacuum rowlock.waiting')
    }
    const cost = {
      buffers: median(costs.map(({ buffers }) => buffers)),
      walBytes: median(costs.map(({ walBytes }) => walBytes)),
      ms: median(costs.map(({ ms }) => ms)),
    }
    return { cost, p50Ms: percentile(tookMs, 0.5), p95Ms: percentile(tookMs, 0.95) }
  } finally {
    await hand.end()
    await server.drop('backlog')
  }
}

/** The oldest and the newest major that Rowlock runs on, where they are installed. */
async function servers(bench: Bench, missing: string[]): Promise<BenchServer[]> {
  const found: BenchServer[] = []
  for (const major of [14, 18]) {
    try {
      found.push(await bench.server({ major }))
    } catch (error) {
      missing.push(`PostgreSQL ${major}: ${(error as Error).message}`)
    }
  }
  return found
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const missing: string[] = []
  const rounds = bench.quick ? 1 : bench.rounds
  const rows: (string | number | null)[][] = []
  const targets: Target[] = []
  const counted: Record<string, Figures> = {}
  const ratios: Record<string, number> = {}
  const ours: Record<string, number> = {}
  for (const server of await servers(bench, missing)) {
    const major = `PostgreSQL ${server.version.split('.')[0]}`
    let smallest: Measured | undefined
    for (const each of casesOf(bench.quick)) {
      const measured = await measure(server, each, rounds)
      smallest ??= measured
      const buffers = measured.cost.buffers / smallest.cost.buffers
      const time = measured.cost.ms / smallest.cost.ms
      bench.say(`${major}, ${each.name}: ${measured.cost.buffers} buffers, ${measured.cost.ms.toFixed(2)} ms`)
      rows.push([
        major,
        each.name,
        measured.cost.buffers,
        buffers,
        measured.cost.ms,
        time,
        measured.p50Ms,
        measured.p95Ms,
      ])
      const label = `${major}: ${each.name}`
      ours[label] = measured.cost.ms
      counted[label] = { buffers: measured.cost.buffers, walBytes: measured.cost.walBytes }
      ratios[label] = buffers
      if (smallest === measured) continue
      targets.push({ what: `${label}: buffers`, is: buffers, atMost: each.atMost })
      targets.push({ what: `${label}: time`, is: time, atMost: each.atMost })
    }
  }
  return {
    rounds,
    ours,
    peers: {},
    ratios,
    counted,
    targets,
    missing,
    tables: [
      {
        title: 'A claim of ten jobs',
        columns: [
          'server',
          'what waits',
          'buffers',
          '× smallest',
          'in the server, ms',
          '× smallest',
          'with commit, p50, ms',
          'p95, ms',
        ],
        rows,
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'backlog',
  title: 'what a claim costs with a thousand, a million and ten million jobs waiting',
  how: [
    'One worker by hand claims ten jobs at a time from one queue. The rows are put into the table by one statement,',
    'then vacuumed and analysed. Buffers and the time in the server are medians of 25 claims a round by',
    '`explain (analyze, buffers)`, rolled back; times with commit are those of 50 claims a round, answered to the',
    'client and finished before the next. On the oldest and the newest PostgreSQL.',
  ].join('\n'),
  rounds: 3,
  needs:
    'about 15 GB of disk below the system’s temporary folder, and ten minutes to fill ten million rows twice',
  run,
}
