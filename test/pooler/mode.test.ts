// A pooler that kept sessions together, and one night does not any more: LISTEN goes deaf, and workers poll.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, handle } from '../../src/index.ts'
import { adminUrl, createDatabase, type TestDatabase } from '../support/server.ts'
import { TEMPLATE } from '../support/template.ts'
import { until } from '../support/until.ts'
import { type Bouncer, findBouncer, startBouncer } from './pgbouncer.ts'

const program = findBouncer()
if (program === undefined) console.info('not run: PgBouncer is not installed')

const note = defineJob<number>('note')

describe.skipIf(program === undefined)('a pooler whose mode is changed', () => {
  let bouncer: Bouncer
  let db: TestDatabase
  let console_: pg.Client
  beforeAll(async () => {
    bouncer = await startBouncer(program!, adminUrl(), 12)
    db = await createDatabase('pooler mode', { template: TEMPLATE })
    const url = new URL(bouncer.url)
    url.pathname = '/pgbouncer'
    console_ = new pg.Client({ connectionString: url.href })
    await console_.connect()
    await console_.query(`set pool_mode = 'session'`)
  })
  afterAll(async () => {
    await console_?.end()
    await bouncer?.stop()
    await db?.drop()
  })

  test('from session to transaction under a worker: it says so, polls, and loses no job', async () => {
    const target = new URL(bouncer.url)
    target.pathname = new URL(db.url).pathname
    const rowlock = createRowlock({ connectionString: target.href })
    const said: string[] = []
    const seen = new Set<number>()
    const worker = rowlock.worker({
      handlers: [handle(note, ({ input }) => void seen.add(input))],
      poll: 50,
      pollListening: '5m',
      logger: {
        debug() {},
        info() {},
        warn: (_: object, message: string) => void said.push(message),
        error: (_: object, message: string) => void said.push(message),
      },
    })
    const changes: boolean[] = []
    worker.on('listening', ({ proven }) => changes.push(proven))
    try {
      await worker.start()
      await until('it listens', () => worker.status.listening)
      await rowlock.enqueueMany([1, 2, 3].map((n) => note.with(n)))
      await until('it works', () => seen.size === 3)
      await console_.query(`set pool_mode = 'transaction'`)
      // As after a restart of the pooler: no client is still linked as it was.
      const direct = new pg.Client({ connectionString: db.url })
      await direct.connect()
      await direct.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()`,
      )
      await until('it has noticed', () => changes.length > 1 && !worker.status.listening)
      await until('enqueues go through', () =>
        rowlock.enqueueMany(Array.from({ length: 50 }, (_, n) => note.with(100 + n))).catch(() => null),
      )
      await until('all are done', async () => {
        const live = 'select from rowlock.waiting union all select from rowlock.running'
        return seen.size >= 53 && (await direct.query(live)).rows.length === 0
      })
      await direct.end()
      expect(worker.status.listening).toBe(false)
      expect(said.join('\n')).toMatch(/LISTEN|hears|notice/i)
    } finally {
      await worker.stop()
      await rowlock.close()
    }
  })
})
