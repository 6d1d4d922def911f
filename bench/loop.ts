// A loop over Rowlock's verbs (claim 250, no work, finish, history kept) beside graphile-worker at its fastest (local
// queue, batched completion, no history), in one run: interleaved rounds, counted figures first.
//
//   npm --prefix bench ci && npm --prefix bench run loop -- [--rounds 5] [--jobs 20000] [--json]

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { makeWorkerUtils, run as runGraphile } from 'graphile-worker'
import pg from 'pg'
import { startEmbedded } from '../src/embedded/index.ts'
import { claim } from '../src/engine/claim.ts'
import { Database } from '../src/engine/database.ts'
import { finish } from '../src/engine/finish.ts'
import { register } from '../src/engine/lease.ts'
import { createRowlock, defineJob } from '../src/index.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    jobs: { type: 'string', default: '20000' },
    json: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const jobs = Number(values.jobs)
const BATCH = 250

interface Figures {
  readonly name: string
  readonly insertCpu: number
  readonly insertWal: number
  readonly drainCpu: number
  readonly drainWal: number
  readonly drainNodeCpu: number
  readonly perSecond: number
}

const folder = mkdtempSync(join(tmpdir(), 'rowlock-bench-'))
const server = await startEmbedded({
  dataDir: join(folder, 'pg'),
  from: fileURLToPath(new URL('../dev/postgres', import.meta.url)),
  settings: { shared_buffers: '512MB', max_wal_size: '8GB', checkpoint_timeout: '1h', max_connections: 100 },
})
const admin = new pg.Client({ connectionString: server.url })
await admin.connect()

/** CPU of the server and all its processes, living and ended. Unit: µs. Source: proc(5), fields 14 to 17. */
function serverCpuUs(): number {
  const tick = 10_000
  const stat = (pid: string): number[] => {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
  }
  const own = stat(String(server.pid))
  let ticks = own[11]! + own[12]! + own[13]! + own[14]!
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const fields = stat(pid)
      if (fields[1] === server.pid) ticks += fields[11]! + fields[12]!
    } catch {
      // ended meanwhile: counted with its parent from now on
    }
  }
  return ticks * tick
}

async function wal(): Promise<number> {
  const { rows } = await admin.query(`select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as bytes`)
  return rows[0].bytes
}

async function measured(
  name: string,
  insert: () => Promise<void>,
  drain: () => Promise<void>,
): Promise<Figures> {
  // Pages written in full after a checkpoint would be counted to whoever comes first.
  await admin.query('checkpoint')
  const before = { cpu: serverCpuUs(), wal: await wal() }
  await insert()
  const between = { cpu: serverCpuUs(), wal: await wal(), node: process.cpuUsage(), at: performance.now() }
  await drain()
  const seconds = (performance.now() - between.at) / 1000
  const node = process.cpuUsage(between.node)
  return {
    name,
    insertCpu: (between.cpu - before.cpu) / jobs,
    insertWal: (between.wal - before.wal) / jobs,
    drainCpu: (serverCpuUs() - between.cpu) / jobs,
    drainWal: ((await wal()) - between.wal) / jobs,
    drainNodeCpu: (node.user + node.system) / jobs,
    perSecond: jobs / seconds,
  }
}

async function freshDatabase(name: string): Promise<string> {
  await admin.query(`drop database if exists ${name} with (force)`)
  await admin.query(`create database ${name}`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  return url.href
}

async function ours(): Promise<Figures> {
  const connectionString = await freshDatabase('ours')
  const rowlock = createRowlock({ connectionString })
  await rowlock.migrate()
  const database = new Database({ connectionString, maxConnections: 2 })
  const noop = defineJob<{ n: number }>('noop')
  const workerId = crypto.randomUUID()
  const figures = await measured(
    'rowlock, history kept',
    async () => {
      await rowlock.enqueueMany(Array.from({ length: jobs }, (_, n) => noop.with({ n })))
    },
    async () => {
      await register(database, workerId, 60_000, {}, 10_000)
      for (let done = 0; done < jobs; ) {
        const wants = [{ queue: 'default', limit: BATCH, kinds: ['noop'] }]
        const claimed = await claim(database, workerId, wants, null, 10_000)
        const outcomes = claimed.jobs.map(({ id, claimId }) => ({
          verb: 'complete' as const,
          id,
          claim_id: claimId,
          ran_ms: 0,
        }))
        done += (await finish(database, outcomes, 10_000)).completed.length
      }
    },
  )
  await database.close()
  await rowlock.close()
  return figures
}

async function graphile(): Promise<Figures> {
  const connectionString = await freshDatabase('graphile')
  const utils = await makeWorkerUtils({ connectionString })
  await utils.migrate()
  const figures = await measured(
    'graphile-worker 0.18.0, local queue 500, batched completion',
    async () => {
      for (let n = 0; n < jobs; n += 1000) {
        const batch = Array.from({ length: Math.min(1000, jobs - n) }, (_, i) => ({
          identifier: 'noop',
          payload: { n: n + i },
        }))
        await utils.addJobs(batch)
      }
    },
    async () => {
      let done = 0
      let finished = () => {}
      const all = new Promise<void>((resolve) => {
        finished = resolve
      })
      const runner = await runGraphile({
        connectionString,
        concurrency: 100,
        noHandleSignals: true,
        logger: quiet(),
        taskList: {
          noop: () => {
            if (++done === jobs) finished()
          },
        },
        preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
      } as never)
      await all
      // The drain ends when the last completion is committed.
      const client = new pg.Client({ connectionString })
      await client.connect()
      for (;;) {
        const { rows } = await client.query('select count(*)::int as n from graphile_worker._private_jobs')
        if (rows[0].n === 0) break
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await client.end()
      await runner.stop()
    },
  )
  await utils.release()
  return figures
}

function quiet(): unknown {
  const none = () => {}
  const logger = { scope: () => logger, error: console.error, warn: none, info: none, debug: none }
  return logger
}

const median = (numbers: number[]): number => numbers.sort((a, b) => a - b)[numbers.length >> 1]!
const results: Figures[] = []
try {
  for (let round = 0; round < rounds; round++) {
    for (const contender of [ours, graphile]) {
      const figures = await contender()
      results.push(figures)
      if (!values.json) console.error(round + 1, figures)
    }
  }
} finally {
  await admin.end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}
const summary = [...new Set(results.map(({ name }) => name))].map((name) => {
  const mine = results.filter((each) => each.name === name)
  const of = (key: Exclude<keyof Figures, 'name'>) =>
    Math.round(median(mine.map((each) => each[key])) * 10) / 10
  return {
    name,
    insertCpuUs: of('insertCpu'),
    insertWalBytes: of('insertWal'),
    drainCpuUs: of('drainCpu'),
    drainWalBytes: of('drainWal'),
    drainNodeCpuUs: of('drainNodeCpu'),
    perSecond: of('perSecond'),
  }
})
const [first, second] = summary as [(typeof summary)[0], (typeof summary)[0]]
const ratios = {
  rate: first.perSecond / second.perSecond,
  drainCpu: second.drainCpuUs / first.drainCpuUs,
  insertCpu: second.insertCpuUs / first.insertCpuUs,
}
if (values.json) console.log(JSON.stringify({ rounds, jobs, summary, ratios }))
else {
  console.table(summary)
  console.log(ratios)
}
