// A bulk change of a million jobs beside workers of the same queue: what a claim takes undisturbed and while the change
// goes on, in interleaved windows; then the process of the change is killed, another goes on, and each job is counted.
//
//   npm --prefix bench ci && npm --prefix bench run bulk -- [--jobs 1000000] [--verb cancel] [--limit 500] [--rounds 5]

import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startEmbedded } from '../src/embedded/index.ts'
import { claim } from '../src/engine/claim.ts'
import { Database } from '../src/engine/database.ts'
import { finish } from '../src/engine/finish.ts'
import { register } from '../src/engine/lease.ts'
import { createRowlock, defineJob } from '../src/index.ts'

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '1000000' },
    verb: { type: 'string', default: 'cancel' },
    limit: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
})
const jobs = Number(values.jobs)
const limit = Number(values.limit)
const windowMs = Number(values.seconds) * 1000
const verb = values.verb as 'cancel' | 'run_now' | 'prioritize'

// The process that is killed: runs the change and says how far it got.
if (process.env.BULK !== undefined) {
  const { url, id } = JSON.parse(process.env.BULK)
  process.on('disconnect', () => process.exit(99))
  const bulk = await createRowlock({ connectionString: url }).openBulk(id)
  await bulk.run({ limit, onStep: ({ changed }) => process.send?.(changed) })
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'rowlock-bench-'))
const server = await startEmbedded({
  dataDir: join(folder, 'pg'),
  from: fileURLToPath(new URL('../dev/postgres', import.meta.url)),
  settings: { shared_buffers: '512MB', max_wal_size: '8GB', max_connections: 100 },
})
const admin = new pg.Client({ connectionString: server.url })
const work = defineJob<number>('work')
const WORKERS = 2

/** Workers without handlers: claim ten, finish them, again and again, while a producer keeps the line filled. */
async function busy(database: Database, tookMs: number[], isOver: () => boolean): Promise<void> {
  const workerId = crypto.randomUUID()
  await register(database, workerId, 3_600_000, {}, 10_000)
  while (!isOver()) {
    const began = performance.now()
    const claimed = await claim(
      database,
      workerId,
      [{ queue: 'mail', limit: 10, kinds: ['work'] }],
      null,
      60_000,
    )
    tookMs.push(performance.now() - began)
    const outcomes = claimed.jobs.map(({ id, claimId, attempt }) => ({
      verb: 'complete' as const,
      id,
      claim_id: claimId,
      attempt,
      ran_ms: 0,
    }))
    if (outcomes.length > 0) await finish(database, outcomes, 60_000)
    await sleep(10)
  }
}

const at = (sorted: readonly number[], part: number): number =>
  Math.round((sorted[Math.floor(sorted.length * part)] ?? Number.NaN) * 100) / 100
const median = (all: number[]): number =>
  at(
    [...all].sort((a, b) => a - b),
    0.5,
  )

try {
  await admin.connect()
  const url = server.url
  const rowlock = createRowlock({ connectionString: url })
  await rowlock.migrate()
  await admin.query(
    `insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, input)
     select nextval('rowlock.job_id'), now(), now(), 'mail', 'unwanted', '{"n": 1}' from generate_series(1, $1)`,
    [jobs],
  )
  await admin.query('vacuum analyze rowlock.waiting')
  await admin.query('checkpoint')
  const options = verb === 'prioritize' ? { priority: 5 } : {}
  const counted = performance.now()
  const bulk = await rowlock.bulk(verb, { queue: 'mail', kind: 'unwanted' }, options)
  console.error(bulk.row.matched, 'counted in ms', Math.round(performance.now() - counted))

  const database = new Database({ connectionString: url, maxConnections: WORKERS })
  let isOver = false
  const producing = (async () => {
    while (!isOver) {
      await rowlock.enqueueMany(Array.from({ length: 20 }, (_, n) => work.with(n, { queue: 'mail' })))
      await sleep(20)
    }
  })()
  const rounds: { idle: number[]; during: number[]; perSecond: number; stepMs: number[] }[] = []
  let tookMs: number[] = []
  const working = Array.from({ length: WORKERS }, () =>
    busy(database, { push: (ms: number) => tookMs.push(ms) } as number[], () => isOver),
  )
  await sleep(2_000)
  for (let round = 0; round < Number(values.rounds); round++) {
    tookMs = []
    await sleep(windowMs)
    const idle = tookMs.sort((a, b) => a - b)
    tookMs = []
    const before = bulk.row.changed
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), windowMs)
    const stepMs: number[] = []
    let last = performance.now()
    const began = last
    await bulk.run({
      limit,
      signal: abort.signal,
      onStep: () => {
        stepMs.push(performance.now() - last)
        last = performance.now()
      },
    })
    clearTimeout(timer)
    const perSecond = ((bulk.row.changed - before) / (performance.now() - began)) * 1000
    const during = tookMs.sort((a, b) => a - b)
    rounds.push({ idle, during, perSecond, stepMs: stepMs.sort((a, b) => a - b) })
    const [p, q] = [at(idle, 0.95), at(during, 0.95)]
    console.error(
      round + 1,
      { idleP95: p, duringP95: q, ratio: q / p, perSecond: Math.round(perSecond) },
      {
        idleP50: at(idle, 0.5),
        duringP50: at(during, 0.5),
        stepAndPauseP50: at(stepMs, 0.5),
        claims: [idle.length, during.length],
      },
    )
    if (bulk.row.outcome !== null) break
  }

  // Killed in the middle of a step, and gone on with by another.
  let said = 0
  const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2), {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, BULK: JSON.stringify({ url, id: bulk.id }) },
  })
  child.on('message', (changed) => {
    said = Number(changed)
  })
  const stop = bulk.row.changed + 20 * limit
  while (said < stop && child.exitCode === null) await sleep(5)
  child.kill('SIGKILL')
  const left = await rowlock.openBulk(bulk.id)
  console.error('killed after', said, 'said; committed', left.row.changed)
  const began = performance.now()
  const from = left.row.changed
  const row = await left.run({ limit })
  const rest = ((row.changed - from) / (performance.now() - began)) * 1000
  isOver = true
  await Promise.all([producing, ...working])
  const { rows } = await admin.query(
    `select count(*)::integer as jobs, count(*) filter (where n = 1)::integer as once
       from (select job_id, count(*) as n from rowlock.audit where verb = $1 group by job_id) as each`,
    [verb],
  )
  const summary = {
    jobs,
    verb,
    limit,
    idleP95Ms: median(rounds.map(({ idle }) => at(idle, 0.95))),
    duringP95Ms: median(rounds.map(({ during }) => at(during, 0.95))),
    ratio: median(rounds.map(({ idle, during }) => at(during, 0.95) / at(idle, 0.95))),
    perSecond: Math.round(median(rounds.map(({ perSecond }) => perSecond))),
    restPerSecond: Math.round(rest),
    changed: row.changed,
    refused: row.refused,
    changedOnce: rows[0].once,
  }
  console.log(values.json ? JSON.stringify(summary) : summary)
  if (rows[0].once !== jobs || rows[0].jobs !== jobs) process.exitCode = 1
  await database.close()
  await rowlock.close()
} finally {
  await admin.end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}
