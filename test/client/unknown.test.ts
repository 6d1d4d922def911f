// When the database goes away in the middle: what the caller is told, what is true then, and that a repeat is safe.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from 'rowlock/embedded'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startProxy } from '../../faults/proxy.ts'
import { createRowlock, defineJob, handle, type Rowlock } from '../../src/index.ts'
import { drain } from '../../src/testing/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

const note = defineJob<unknown>('note')

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('unknown')
})
afterAll(() => db.drop())

const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error) => error.code,
  )

describe('a connection that breaks', () => {
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let rowlock: Rowlock
  beforeEach(async () => {
    await db.sql('truncate rowlock.waiting, rowlock.dedupe')
    proxy = await startProxy(db.url)
    rowlock = createRowlock({ connectionString: proxy.url, maxConnections: 2 })
    // A connection is open already: what breaks is the statement, not the beginning.
    await rowlock.job('1')
  })
  afterEach(async () => {
    await proxy.close()
    await rowlock.close()
  })
  test('after the job was stored, before the answer came, is OUTCOME_UNKNOWN; the repeat finds it', async () => {
    void proxy.cutAnswer(/store/)
    expect(await codeOf(rowlock.enqueue(note, 1, { dedupeKey: 'k' }))).toBe('OUTCOME_UNKNOWN')
    const id = await db.value('select id::text from rowlock.waiting')
    expect(await rowlock.enqueue(note, 1, { dedupeKey: 'k' })).toEqual({ id, created: false })
    expect(await waiting()).toBe(1)
  })

  test('before the statement reached the server is OUTCOME_UNKNOWN too; the repeat creates the job', async () => {
    await proxy.set('blackhole')
    const before = proxy.statements.length
    const lost = codeOf(rowlock.enqueue(note, 1, { dedupeKey: 'k' }))
    await until('it was sent', () => proxy.statements.length > before)
    proxy.reset()
    expect(await lost).toBe('OUTCOME_UNKNOWN')
    await proxy.set('pass')
    expect(await waiting()).toBe(0)
    expect(await rowlock.enqueue(note, 1, { dedupeKey: 'k' })).toMatchObject({ created: true })
    expect(await waiting()).toBe(1)
  })

  const many = (n: number) => Array.from({ length: n }, (_, i) => note.with(i, { dedupeKey: `k${i}` }))
  test.each([
    ['one statement, its answer', 300, /store/, 300],
    ['several statements, the answer to the commit', 1_500, /^commit$/, 1_500],
    ['several statements, the answer to the first', 1_500, /store/, 0],
  ])(
    'in a bulk of %s is OUTCOME_UNKNOWN for all of it; the repeat makes it whole',
    async (_, n, when, stored) => {
      void proxy.cutAnswer(when)
      const error = await rowlock.enqueueMany(many(n)).catch((error) => error)
      expect([error.code, error.index]).toEqual(['OUTCOME_UNKNOWN', undefined])
      await proxy.set('pass')
      await until('the server has noticed', async () => {
        const open = await db.value(
          `select count(*)::integer from pg_stat_activity
          where datname = current_database() and application_name = 'rowlock' and state <> 'idle'`,
        )
        return open === 0
      })
      expect(await waiting()).toBe(stored)
      const again = await rowlock.enqueueMany(many(n))
      expect(again.filter(({ created }) => created)).toHaveLength(n - stored)
      expect(await waiting()).toBe(n)
    },
  )

  test('in the answer of a verb is OUTCOME_UNKNOWN, and the repeat says what is', async () => {
    const { id } = await rowlock.enqueue(note, 1)
    void proxy.cutAnswer(/cancel/)
    expect(await codeOf(rowlock.cancel(id))).toBe('OUTCOME_UNKNOWN')
    expect(await rowlock.cancel(id)).toBe('already_ended')
  })

  test('that swallows everything is given up after a time, and no connection is lost to the pool', async () => {
    const hasty = createRowlock({
      connectionString: proxy.url,
      statementTimeoutMs: 3_000,
      maxConnections: 2,
    })
    for (let round = 0; round < 3; round++) {
      await Promise.all([hasty.enqueue(note, 1), hasty.enqueue(note, 2)])
      await proxy.set('blackhole')
      const calls = [hasty.enqueue(note, 'lost'), hasty.enqueue(note, 'lost')]
      expect(await Promise.all(calls.map(codeOf))).toEqual(['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN'])
      proxy.reset()
      await proxy.set('pass')
    }
    // As many at once as the pool has: each needs a connection that works.
    expect(await Promise.all([hasty.enqueue(note, 3), hasty.enqueue(note, 4)])).toHaveLength(2)
    expect(await waiting()).toBe(8)
    await hasty.close()
  })

  test('that is refused is DATABASE_UNAVAILABLE: nothing was sent', async () => {
    await proxy.set('refuse')
    const client = createRowlock({ connectionString: proxy.url })
    expect(await codeOf(client.enqueue(note, 1))).toBe('DATABASE_UNAVAILABLE')
    expect(await codeOf(client.enqueueMany([note.with(1)]))).toBe('DATABASE_UNAVAILABLE')
    expect(await codeOf(client.cancel('1'))).toBe('DATABASE_UNAVAILABLE')
    expect(await codeOf(client.migrate())).toBe('DATABASE_UNAVAILABLE')
    expect(await waiting()).toBe(0)
    await client.close()
  })

  test('to a name that nobody has, or a database that is not there, is DATABASE_UNAVAILABLE', async () => {
    for (const connectionString of ['postgres://nobody.invalid/x', `${db.url}_is_not_there`, 'no address']) {
      const client = createRowlock({ connectionString })
      expect([connectionString, await codeOf(client.enqueue(note, 1))]).toEqual([
        connectionString,
        'DATABASE_UNAVAILABLE',
      ])
      await client.close()
    }
  })

  test('while a caller has a transaction is the caller’s to see: the error of its client', async () => {
    const client = await db.session()
    await client.query('begin')
    await db.sql('select pg_terminate_backend($1)', [(client as unknown as { processID: number }).processID])
    await expect(rowlock.in(client).enqueue(note, 1)).rejects.toThrow(/terminat|not queryable/i)
    expect(await waiting()).toBe(0)
  })
})

test('a server that stops and comes back: the same client goes on', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'rowlock-stopped-'))
  const start = (port?: number) =>
    startEmbedded({ dataDir, ...programs(), fsync: false, ...(port && { port }) })
  let server = await start()
  const rowlock = createRowlock({ connectionString: server.url })
  try {
    await rowlock.migrate()
    const { id } = await rowlock.enqueue(note, 1)
    await server.stop()
    expect(['DATABASE_UNAVAILABLE', 'OUTCOME_UNKNOWN']).toContain(await codeOf(rowlock.enqueue(note, 2)))
    server = await start(Number(new URL(server.url).port))
    expect(await rowlock.job(id)).toMatchObject({ state: 'queued', input: 1 })
    expect(await rowlock.enqueue(note, 3)).toMatchObject({ created: true })
  } finally {
    await rowlock.close()
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 240_000)

test.each([
  ['beyond what 32 bits hold', '3000000000'],
  ['beyond what a number holds exactly', '9007199254740993'],
])('an id %s stays the same text from end to end', async (_, start) => {
  const rowlock = createRowlock({ connectionString: db.url })
  await db.sql('truncate rowlock.waiting, rowlock.dedupe')
  await db.sql(`select setval('rowlock.job_id', $1, false)`, [start])
  const id = (n: number) => String(BigInt(start) + BigInt(n))
  try {
    expect(await rowlock.enqueue(note, 0, { dedupeKey: 'k' })).toEqual({ id: id(0), created: true })
    expect(await rowlock.enqueue(note, 0, { dedupeKey: 'k' })).toEqual({ id: id(0), created: false })
    const found = (await rowlock.job(id(0)))!
    expect(found.id).toBe(id(0))
    const many = await rowlock.enqueueMany(Array.from({ length: 1_100 }, (_, n) => note.with(n)))
    const first = BigInt(many[0]!.id)
    expect(many.map((each) => each.id)).toEqual(many.map((_, n) => String(first + BigInt(n))))
    expect(await rowlock.cancel(many[0]!.id)).toBe('cancelled')
    expect((await rowlock.job(many[0]!.id))!.state).toBe('cancelled')
    expect((await rowlock.job(many[1]!.id))!.state).toBe('queued')
    await db.sql('delete from rowlock.waiting where id > $1', [many[5]!.id])

    const seen: string[] = []
    const handlers = [handle(note, ({ job }) => void seen.push(job.id))]
    const worker = rowlock.worker({ handlers, flush: 0 })
    await worker.start()
    await until('the worker has done all', async () => (await waiting()) === 0 && seen.length === 6)
    await worker.stop()
    expect(seen.sort()).toEqual([id(0), ...many.slice(1, 6).map((each) => each.id)].sort())

    const retried = await rowlock.retry(id(0))
    expect((await rowlock.job(retried.id))!.retriedFrom).toBe(id(0))
    seen.length = 0
    expect(await drain(rowlock, { handlers })).toMatchObject({ done: 1 })
    expect(seen).toEqual([retried.id])
    expect((await rowlock.job(retried.id))!.state).toBe('done')
  } finally {
    await rowlock.close()
  }
})
