// Connections that are scarce or slow to make: all workers come up in the end, and none leaks a session or a place.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createRowlock, defineJob, handle, type Rowlock, type Worker } from 'rowlock'
import { startEmbedded } from 'rowlock/embedded'
import { expect, test } from 'vitest'
import { startProxy } from '../../faults/proxy.ts'
import { rowlockDatabase } from '../support/database.ts'
import { silent } from '../support/ground.ts'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

const job = defineJob<number>('job')
const MAX = 40
const WORKERS = 6

test('six workers of 50 slots that start at once come up under a small max_connections', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'rowlock-scarce-'))
  const settings = { max_connections: MAX, superuser_reserved_connections: 3 }
  const server = await startEmbedded({ dataDir, ...programs(), fsync: false, settings })
  const admin = new pg.Client({ connectionString: server.url })
  const clients: Rowlock[] = []
  const workers: Worker[] = []
  const crowd: pg.Client[] = []
  try {
    await admin.connect()
    const rowlock = createRowlock({ connectionString: server.url, maxConnections: 1 })
    clients.push(rowlock)
    await rowlock.migrate()
    await admin.query(`create role app login password 'app'; grant usage on schema rowlock to app`)
    await admin.query('grant execute on all functions in schema rowlock to app')
    await admin.query('grant select on all tables in schema rowlock to app')
    const url = new URL(server.url)
    url.username = 'app'
    url.password = 'app'
    const all = await rowlock.enqueueMany(Array.from({ length: 600 }, (_, n) => job.with(n)))
    // Others have nearly all of them: whoever starts now is refused with 53300.
    for (let n = 0; n < MAX - 3 - 2 - 4; n++) {
      const one = new pg.Client({ connectionString: url.href, application_name: 'the crowd' })
      one.on('error', () => {})
      await one.connect()
      crowd.push(one)
    }
    const seen = new Set<string>()
    const errors: unknown[] = []
    for (let n = 0; n < WORKERS; n++) {
      const client = createRowlock({ connectionString: url.href })
      clients.push(client)
      const worker = client.worker({
        handlers: [
          handle(job, async ({ job }) => {
            await new Promise((resolve) => setTimeout(resolve, 20))
            seen.add(job.id)
          }),
        ],
        queues: { default: { concurrency: 50 } },
        lease: 5_000,
        poll: 50,
        logger: { ...silent, warn: (fields: object) => void errors.push(fields) },
      })
      workers.push(worker)
    }
    await Promise.all(workers.map((worker) => worker.start()))
    await until('somebody was refused', () => errors.length > 0)
    await Promise.all(crowd.splice(0).map((one) => one.end()))
    await until('all have a lease and listen', () =>
      workers.every(({ status }) => status.workerId !== null && status.listening),
    )
    await until('all is done', async () => {
      const live = 'select from rowlock.waiting union all select from rowlock.running'
      return (await admin.query(live)).rows.length === 0
    })
    expect(seen.size).toBe(all.length)
    // Three to work, one to beat, one to listen: however many slots there are. One that was given up may take a moment.
    await until('each has five sessions at most', async () => {
      const { rows } = await admin.query(
        `select count(*)::integer as n from pg_stat_activity where application_name like 'rowlock %'`,
      )
      return rows[0].n <= WORKERS * 5
    })
  } finally {
    await Promise.all(crowd.map((one) => one.end().catch(() => {})))
    await Promise.all(workers.map((worker) => worker.stop({ grace: 0 })))
    await Promise.all(clients.map((client) => client.close()))
    await admin.end()
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('connections that are made too late are given up, again and again, and none is kept', async () => {
  const db = await rowlockDatabase('slow connects')
  const proxy = await startProxy(db.url)
  const pool = new pg.Pool({
    connectionString: proxy.url,
    max: 4,
    connectionTimeoutMillis: 150,
    application_name: 'slow',
  })
  pool.on('error', () => {})
  const rowlock = createRowlock({ pool })
  const sessions = () =>
    db.value<number>(`select count(*)::integer from pg_stat_activity where application_name = 'slow'`)
  try {
    proxy.delay(60)
    for (let round = 0; round < 25; round++) {
      const codes = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          rowlock.enqueue(job, n).then(
            () => 'done',
            (error) => error.code,
          ),
        ),
      )
      expect(new Set(codes)).toEqual(new Set(['DATABASE_UNAVAILABLE']))
    }
    proxy.delay(0)
    await until('what was half made is gone', async () => (await sessions()) <= 4 && pool.totalCount <= 4)
    // 150 ms are little on a busy machine, also where nothing is in the way.
    await until('all four places are free', async () => {
      const held = await Promise.allSettled([1, 2, 3, 4].map(() => pool.connect()))
      for (const one of held) if (one.status === 'fulfilled') one.value.release()
      return held.every(({ status }) => status === 'fulfilled')
    })
    await rowlock.enqueue(job, 1)
    await until('no session is left over', async () => (await sessions()) <= 4)
    expect(pool.waitingCount).toBe(0)
    await until('the sockets as well', () => proxy.open <= 4)
  } finally {
    await rowlock.close()
    await pool.end()
    await proxy.close()
    await db.drop()
  }
})
