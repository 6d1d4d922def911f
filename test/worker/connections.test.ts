// How many connections a worker opens: the table of docs/running-in-production.md.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  createRowlock,
  defineJob,
  handle,
  handleInTransaction,
  type Rowlock,
  type WorkerOptions,
} from '../../src/index.ts'
import { silent } from '../support/ground.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'
import { TEMPLATE } from '../support/template.ts'
import { until } from '../support/until.ts'

const plain = defineJob<null>('plain')
const written = defineJob<null>('written')
const SLOTS = 20

let db: TestDatabase
let watcher: pg.Client
const clients: Rowlock[] = []
const pools: pg.Pool[] = []
beforeAll(async () => {
  db = await createDatabase('connections', { template: TEMPLATE })
  watcher = new pg.Client({ connectionString: db.url, application_name: 'watcher' })
  await watcher.connect()
})
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  await Promise.all(pools.splice(0).map((pool) => pool.end()))
})
afterAll(async () => {
  await watcher?.end()
  await db?.drop()
})

async function connections(): Promise<Record<string, number>> {
  const { rows } = await watcher.query(
    `select application_name as name, count(*)::integer as n from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend'
        and application_name not in ('', 'watcher') group by 1`,
  )
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]))
}

/** With every slot busy: the most connections of each name that were seen while jobs came, ran and ended. */
async function most(rowlock: Rowlock, job: typeof plain, options: Partial<WorkerOptions> = {}) {
  clients.push(rowlock)
  let release: () => void = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let running = 0
  const body = async () => {
    running++
    await released
  }
  const worker = rowlock.worker({
    handlers: [job === written ? handleInTransaction(written, body) : handle(plain, body)],
    queues: { default: { concurrency: SLOTS, prefetch: SLOTS } },
    heartbeat: 100,
    poll: 50,
    maintenance: 100,
    logger: silent,
    ...options,
  })
  let heard = options.listen === false
  worker.on('listening', ({ proven }) => {
    heard ||= proven
  })
  const found: Record<string, number> = {}
  const look = async () => {
    for (const [name, n] of Object.entries(await connections())) found[name] = Math.max(found[name] ?? 0, n)
  }
  await rowlock.enqueueMany(Array.from({ length: 10 * SLOTS }, () => job.with(null)))
  await worker.start()
  await until('every slot is busy and it hears', async () => {
    await look()
    return running >= SLOTS && heard
  })
  await look()
  release()
  await until('all are done', async () => {
    await look()
    return (
      (await watcher.query('select from rowlock.waiting union all select from rowlock.running')).rows
        .length === 0
    )
  })
  await worker.stop()
  await until('its connections are closed', async () => {
    const left = await connections()
    return Object.keys(left).every((name) => name === 'rowlock' || name === 'mine')
  })
  return found
}

test('a worker opens three to work, one to beat and one to listen, however many slots it has', async () => {
  const found = await most(createRowlock({ connectionString: db.url }), plain)
  expect(found['rowlock worker']).toBeLessThanOrEqual(3)
  expect(found).toMatchObject({ 'rowlock heartbeat': 1, 'rowlock listen': 1 })
  expect(Object.keys(found).sort()).toEqual([
    'rowlock',
    'rowlock heartbeat',
    'rowlock listen',
    'rowlock worker',
  ])
})

test('one that does not listen opens none for it', async () => {
  const found = await most(createRowlock({ connectionString: db.url }), plain, { listen: false })
  expect(found).not.toHaveProperty('rowlock listen')
})

test('handlers in transactions have one each', async () => {
  const found = await most(createRowlock({ connectionString: db.url }), written)
  expect(found['rowlock handlers']).toBe(SLOTS)
  expect(found['rowlock worker']).toBeLessThanOrEqual(3)
})

test('handlers in transactions take theirs from the pool of the client, the rest stays beside it', async () => {
  const pool = new pg.Pool({ connectionString: db.url, max: SLOTS + 2, application_name: 'mine' })
  pools.push(pool)
  const found = await most(createRowlock({ pool }), written)
  expect(found.mine).toBeGreaterThanOrEqual(SLOTS)
  expect(found.mine).toBeLessThanOrEqual(SLOTS + 2)
  expect(found).not.toHaveProperty('rowlock handlers')
  expect(found).toMatchObject({ 'rowlock heartbeat': 1, 'rowlock listen': 1 })
})
