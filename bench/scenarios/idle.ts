// What workers that have nothing to do ask of the server.

import { startChild } from '../kit/child.ts'
import type { Bench, Scenario, ScenarioResult, Target } from '../kit/scenario.ts'
import type { BenchServer } from '../kit/server.ts'
import { rowlockOn } from '../ours/database.ts'
import type { WorkerChildOptions } from '../ours/worker-child.ts'

const CHILD = new URL('../ours/worker-child.ts', import.meta.url)

/** What a statement is for; looks for work are claims. */
const KINDS = [
  ['claim', /"?\bclaim\b"?\(/],
  ['flags', /\bsleep\b"?\(/],
  ['heartbeat', /\b(heartbeat|held_jobs|register)\b"?\(/],
  ['maintenance', /\b(reap|sweep|expire|make_days|days_due|lock_key)\b/],
  ['proof of LISTEN', /pg_notify|listen/i],
] as const

/** Whether notices are listened for, and how many queues are served. */
const SETTINGS = [
  [true, 1],
  [true, 10],
  [true, 50],
  [false, 10],
] as const

const STARTED_AT_ONCE = 5

interface Watched {
  readonly calls: Readonly<Record<string, number>>
  readonly cpuUs: number
}

/** Start so many worker processes on so many queues, let them fall asleep, and count for some poll intervals. */
async function watch(
  server: BenchServer,
  processes: number,
  queues: number,
  poll: { readonly ms: number; readonly count: number; readonly listens: boolean },
): Promise<Watched> {
  const url = await rowlockOn(server, 'idle')
  const options: WorkerChildOptions = {
    url,
    queues: Object.fromEntries(Array.from({ length: queues }, (_, n) => [`q${n}`, { concurrency: 10 }])),
    worker: { poll: poll.ms, pollListening: poll.ms, listen: poll.listens },
  }
  const children: Awaited<ReturnType<typeof startChild>>[] = []
  try {
    for (let left = processes; left > 0; left -= STARTED_AT_ONCE) {
      const some = Array.from({ length: Math.min(left, STARTED_AT_ONCE) }, () => startChild(CHILD))
      children.push(...(await Promise.all(some)))
      await Promise.all(children.slice(-some.length).map((child) => child.ask('start', options)))
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(3_000, poll.ms)))
    await server.admin.query('select pg_stat_statements_reset()')
    await new Promise((resolve) => setTimeout(resolve, poll.ms * poll.count))
    const { rows } = await server.admin.query(
      `select query, calls::integer as calls, (total_exec_time * 1000)::float8 as us from pg_stat_statements
        where toplevel and dbid = (select oid from pg_database where datname = 'idle')`,
    )
    const calls: Record<string, number> = {}
    let cpuUs = 0
    for (const row of rows) {
      const kind =
        KINDS.find(([, pattern]) => pattern.test(row.query))?.[0] ?? `other: ${row.query.slice(0, 60)}`
      calls[kind] = (calls[kind] ?? 0) + row.calls
      cpuUs += row.us
    }
    return { calls, cpuUs }
  } finally {
    await Promise.all(children.map((child) => child.end()))
    await server.drop('idle')
  }
}

async function run(bench: Bench): Promise<ScenarioResult> {
  const server = await bench.server()
  const processes = bench.quick ? 2 : 50
  const poll = bench.quick ? { ms: 1_000, count: 5 } : { ms: 10_000, count: 6 }
  const rows: (string | number | null)[][] = []
  const targets: Target[] = []
  const counted: Record<string, Record<string, number>> = {}
  for (const [listens, queues] of SETTINGS) {
    const { calls, cpuUs } = await watch(server, processes, queues, { ...poll, listens })
    const per = (n: number | undefined): number => (n ?? 0) / processes / poll.count
    const all = Object.values(calls).reduce((sum, n) => sum + n, 0)
    const how = listens ? 'LISTEN' : 'polling'
    const label = `${how}, ${queues} queues`
    bench.say(`${label}: ${JSON.stringify(calls)}`)
    const others = Object.entries(calls).filter(([kind]) => kind.startsWith('other'))
    rows.push([
      how,
      queues,
      ...KINDS.map(([kind]) => per(calls[kind])),
      per(others.reduce((sum, [, n]) => sum + n, 0)),
      per(all),
      cpuUs / processes / poll.count,
    ])
    counted[label] = {
      claimsPerPoll: per(calls.claim),
      statementsPerPoll: per(all),
      serverUsPerPoll: cpuUs / processes / poll.count,
    }
    // A poll is jittered by a fifth: five may fit where four were expected.
    targets.push({ what: `${label}: looks per process and poll`, is: per(calls.claim), atMost: 1.25 })
  }
  const ten = counted['LISTEN, 10 queues']!
  targets.push({
    what: 'LISTEN, 10 queues: all statements per process and poll, heartbeats and upkeep included',
    is: ten.statementsPerPoll!,
    atMost: 1.25,
    stretch: true,
  })
  return {
    ours: ten,
    peers: {},
    ratios: { '50 queues against one': counted['LISTEN, 50 queues']!.claimsPerPoll! / ten.claimsPerPoll! },
    counted,
    targets,
    tables: [
      {
        title: `${processes} idle worker processes: statements per process and poll interval of ${poll.ms / 1000} s`,
        columns: ['mode', 'queues', ...KINDS.map(([kind]) => kind), 'other', 'all', 'server, µs'],
        rows,
      },
    ],
  }
}

export const scenario: Scenario = {
  name: 'idle',
  title: 'what 50 idle workers on 10 queues ask of the server',
  how: [
    'Worker processes with their default settings serve 1, 10 and 50 queues, on which nothing is. When they',
    'sleep, `pg_stat_statements` is reset and read again some poll intervals later. Looks for work are `claim`; the',
    'rest is what a worker does whether it is idle or not: heartbeats each 10 s, the upkeep of the one on duty each',
    '2 s, and the proof that notices arrive. A quick run polls each second, so that it is over sooner.',
  ].join('\n'),
  rounds: 1,
  run,
}
