// A client from its making to its end: when it connects, how many connections it takes, what keeps a process alive.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRowlock, defineJob, handle, type Rowlock, type RowlockOptions } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { runTypeScript, startTypeScript } from '../support/script.ts'
import { until } from '../support/until.ts'

const note = defineJob<unknown>('note')

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('life')
})
afterAll(() => db.drop())

const made: Rowlock[] = []
afterEach(async () => {
  await Promise.all(made.splice(0).map((rowlock) => rowlock.close()))
  // The server lists a session for a moment after its end; the next test counts.
  await until('their sessions are gone', async () => (await backends()).length === 0)
})
function client(options: Partial<RowlockOptions> = {}): Rowlock {
  const rowlock = createRowlock({ connectionString: db.url, applicationName: 'the client', ...options })
  made.push(rowlock)
  return rowlock
}
const backends = () =>
  db.sql<{ pid: number; state: string }>(
    `select pid, state from pg_stat_activity
      where datname = current_database() and application_name = 'the client' order by pid`,
  )
const terminate = async () => {
  for (const { pid } of await backends()) await db.sql('select pg_terminate_backend($1, 5000)', [pid])
}

describe('a client', () => {
  test('connects when it is first used, not when it is made', async () => {
    const rowlock = client()
    rowlock.worker({ handlers: [handle(note, () => {})] })
    expect(await backends()).toEqual([])
    await rowlock.enqueue(note, 1)
    expect(await backends()).toHaveLength(1)
  })

  test('that does one thing after the other has one connection', async () => {
    const rowlock = client()
    for (let n = 0; n < 20; n++) await rowlock.enqueue(note, n)
    await rowlock.enqueueMany(Array.from({ length: 1_200 }, (_, n) => note.with(n)))
    const { id } = await rowlock.enqueue(note, 1)
    await rowlock.job(id)
    await rowlock.cancel(id)
    expect(await backends()).toHaveLength(1)
  })

  test('never has more connections than it may, and says who it is', async () => {
    const rowlock = client({ maxConnections: 3 })
    await Promise.all(Array.from({ length: 50 }, (_, n) => rowlock.enqueue(note, n)))
    expect((await backends()).length).toBeLessThanOrEqual(3)
    expect((await backends()).length).toBeGreaterThan(0)
  })

  test('leaves no transaction open behind it, whatever went wrong', async () => {
    const rowlock = client()
    const refused = Array.from({ length: 1_500 }, (_, n) => note.with(n === 1_400 ? Number.NaN : n))
    await expect(rowlock.enqueueMany(refused)).rejects.toThrow()
    await expect(rowlock.runNow('999999999')).rejects.toThrow()
    await until('all its connections are idle', async () =>
      (await backends()).every(({ state }) => state === 'idle'),
    )
  })

  test('keeps no process alive: a script that enqueues and ends without close() ends by itself', async () => {
    const script = 'test/client/fixtures/enqueue-once.ts'
    const child = startTypeScript(script, [db.url])
    child.process.stdout!.once('data', () => {
      // Long before its idle connection would be closed.
      setTimeout(() => child.process.kill(), 8_000).unref()
    })
    const [used, unused] = await Promise.all([child.ended, runTypeScript(script, [db.url, 'never used'])])
    expect(used).toMatchObject({ code: 0, stderr: '' })
    expect(unused).toMatchObject({ code: 0, stderr: '', stdout: '' })
    expect(await client().job(used.stdout)).toMatchObject({ state: 'queued', input: 'from a script' })
  })

  test('whose connections are ended while they are idle goes on with the next call', async () => {
    const rowlock = client()
    await Promise.all([rowlock.enqueue(note, 1), rowlock.enqueue(note, 2)])
    await terminate()
    await until('they are gone', async () => (await backends()).length === 0)
    // The news of an end may be on its way when the next call is made.
    await until('a call gets through', () => rowlock.enqueue(note, 3).catch(() => null))
    expect(await rowlock.enqueue(note, 4)).toMatchObject({ created: true })
  })

  test('whose connection is ended while a statement runs says so, and goes on with the next call', async () => {
    const rowlock = client({ maxConnections: 1 })
    const holder = await db.session()
    await holder.query('begin')
    await holder.query('lock table rowlock.waiting in access exclusive mode')
    const stuck = rowlock.enqueue(note, 1)
    const failed = expect(stuck).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await until('it waits', async () => (await backends()).some(({ state }) => state === 'active'))
    await terminate()
    await failed
    await holder.query('commit')
    expect(await rowlock.enqueue(note, 2)).toMatchObject({ created: true })
  })

  test('whose statement goes without an answer for too long gives it up and drops its connection', async () => {
    const rowlock = client({ maxConnections: 1, statementTimeoutMs: 3_000 })
    await rowlock.enqueue(note, 1)
    const [before] = await backends()
    const holder = await db.session()
    await holder.query('begin')
    await holder.query('lock table rowlock.waiting in access exclusive mode')
    await expect(rowlock.enqueue(note, 1)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await holder.query('commit')
    expect(await rowlock.enqueue(note, 2)).toMatchObject({ created: true })
    await until('the old connection is gone', async () =>
      (await backends()).every(({ pid }) => pid !== before!.pid),
    )
  })
})

describe('close', () => {
  test('ends the connections the client made, twice as well as once, and every call after it is CLOSED', async () => {
    const rowlock = client()
    const { id } = await rowlock.enqueue(note, 1)
    await Promise.all([rowlock.close(), rowlock.close()])
    await rowlock.close()
    await until('its connections are gone', async () => (await backends()).length === 0)
    const calls: Record<string, () => Promise<unknown>> = {
      enqueue: () => rowlock.enqueue(note, 1),
      enqueueMany: () => rowlock.enqueueMany([note.with(1)]),
      cancel: () => rowlock.cancel(id),
      job: () => rowlock.job(id),
      pause: () => rowlock.pause('default'),
      migrate: () => rowlock.migrate(),
    }
    for (const [name, call] of Object.entries(calls)) {
      expect([name, await call().catch((error) => error.code)]).toEqual([name, 'CLOSED'])
    }
  })

  test('of a client that was never used, or whose database is away, does nothing', async () => {
    await client().close()
    const away = client({ connectionString: 'postgres://127.0.0.1:1/x' })
    await expect(away.enqueue(note, 1)).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    await away.close()
  })

  test('leaves a pool that was passed in to its owner', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const rowlock = createRowlock({ pool })
    await rowlock.enqueue(note, 1)
    await rowlock.close()
    expect((await pool.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    await expect(rowlock.enqueue(note, 1)).rejects.toMatchObject({ code: 'CLOSED' })
    await pool.end()
  })

  test('waits for what is on its way', async () => {
    const rowlock = client()
    const work = rowlock.enqueueMany(Array.from({ length: 3_000 }, (_, n) => note.with(n)))
    await until('it is on its way', async () => (await backends()).length > 0)
    await rowlock.close()
    expect(await work).toHaveLength(3_000)
  })
})

describe('a pool that was passed in', () => {
  test('serves clients of its own size 1: no call needs two connections', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const rowlock = createRowlock({ pool })
    await Promise.all([
      rowlock.enqueue(note, 1),
      rowlock.enqueueMany(Array.from({ length: 2_500 }, (_, n) => note.with(n))),
      rowlock.pause('a'),
      rowlock.migrate(),
      rowlock.job('1'),
    ])
    expect(pool.waitingCount).toBe(0)
    expect(pool.idleCount).toBe(1)
    await pool.end()
  })

  test('may lose its connections without taking the process down', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 2, application_name: 'the client' })
    const rowlock = createRowlock({ pool })
    await rowlock.enqueue(note, 1)
    await terminate()
    await until('the pool has noticed', () => pool.totalCount === 0)
    expect(await rowlock.enqueue(note, 2)).toMatchObject({ created: true })
    await pool.end()
  })

  test('may be shared by many clients without a warning', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const warnings: Error[] = []
    const hear = (warning: Error) => warnings.push(warning)
    process.on('warning', hear)
    for (let n = 0; n < 15; n++) await createRowlock({ pool }).job('1')
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', hear)
    expect(warnings).toEqual([])
    await pool.end()
  })
})

test.each([
  ['nothing at all', undefined, undefined],
  ['neither a pool nor an address', {}, 'connectionString'],
  ['both', { connectionString: 'postgres://x', pool: { connect() {} } }, 'pool'],
  ['an empty address, as of a variable that is not set', { connectionString: '' }, 'connectionString'],
  ['an address that is no text', { connectionString: 5 }, 'connectionString'],
  ['what is no pool', { pool: {} }, 'pool'],
  ['a slip', { connectionstring: 'postgres://x' }, 'connectionstring'],
  ['no connections', { connectionString: 'postgres://x', maxConnections: 0 }, 'maxConnections'],
  ['half a connection', { connectionString: 'postgres://x', maxConnections: 1.5 }, 'maxConnections'],
  ['no time', { connectionString: 'postgres://x', statementTimeoutMs: 0 }, 'statementTimeoutMs'],
  ['a number as name', { connectionString: 'postgres://x', applicationName: 5 }, 'applicationName'],
  ['an empty schema', { connectionString: 'postgres://x', schema: '' }, 'schema'],
])('createRowlock with %s is refused at once', (_, options, path) => {
  let error: unknown
  try {
    createRowlock(options as never)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toMatchObject({ code: 'INVALID_OPTION', ...(path !== undefined && { path }) })
})

test('a slip in an option of createRowlock is answered with the word that was meant', () => {
  expect(() => createRowlock({ connectionstring: 'postgres://x' } as never)).toThrow(
    /did you mean 'connectionString'\?/,
  )
})
