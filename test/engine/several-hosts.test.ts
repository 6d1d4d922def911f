// Connections to the first of several hosts that is fit: one that is away, one that does not answer, a standby.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { createRowlock, handle, type Rowlock } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { type EmbeddedServer, startEmbedded } from '../../src/embedded/index.ts'
import { Database } from '../../src/engine/database.ts'
import { reaching } from '../../src/engine/hosts-client.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { codeOf, messageOf, note } from '../support/ground.ts'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let standby: EmbeddedServer
let folder: string
/** Two ways to the same server, each with a port of its own. */
let first: PostgresProxy
let second: PostgresProxy
let open: { close(): Promise<unknown> }[] = []

beforeAll(async () => {
  db = await rowlockDatabase('several_hosts')
  folder = mkdtempSync(join(tmpdir(), 'rowlock-hosts-'))
  const options = { dataDir: folder, ...programs(), fsync: false }
  await (await startEmbedded(options)).stop()
  writeFileSync(join(folder, 'data/standby.signal'), '')
  standby = await startEmbedded(options)
})
afterAll(async () => {
  await standby?.stop()
  rmSync(folder, { recursive: true, force: true })
  await db?.drop()
})
beforeEach(async () => {
  first = await startProxy(db.url)
  second = await startProxy(db.url)
})
afterEach(async () => {
  await Promise.all(open.map((one) => one.close()))
  open = []
  await Promise.all([first.close(), second.close()])
})

const databaseName = () => new URL(db.url).pathname.slice(1)
const portOf = (url: string) => new URL(url).port
/** The database of the test, on these ports. */
function across(ports: (string | number)[], more = ''): string {
  const url = new URL(db.url)
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  return `postgres://${url.username}:${url.password}@${hosts}${url.pathname}${more}`
}
const bothWays = () => across([portOf(first.url), portOf(second.url)])
function client(connectionString: string): Rowlock {
  const rowlock = createRowlock({ connectionString, maxConnections: 1 })
  open.push(rowlock)
  return rowlock
}
function database(connectionString: string): Database {
  const one = new Database({ connectionString, maxConnections: 1 })
  open.push(one)
  return one
}
/** A port that nobody listens on. */
async function nowhere(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
const asks = (proxy: PostgresProxy) =>
  proxy.statements.filter(({ text }) => text.includes('pg_is_in_recovery')).length

test('the first host that is there is taken', async () => {
  const rowlock = client(across([await nowhere(), portOf(first.url)]))
  expect(await rowlock.enqueue(note, 1)).toMatchObject({ created: true })
})

test('a standby is asked once, and let go of; the error names each host with its reason, and no password', async () => {
  // The other host is of another cluster, where the password is wrong.
  const url = new URL(db.url)
  const away = new URL(standby.url)
  const proxy = await startProxy(standby.url)
  try {
    const hosts = `127.0.0.1:${portOf(proxy.url)},127.0.0.1:${url.port}`
    const one = database(`postgres://postgres:${away.password}@${hosts}/postgres`)
    const said = await messageOf(one.connect())
    expect(said).toMatch(/none of the 2 hosts is fit \(127\.0\.0\.1:\d+: it is a standby; 127\.0\.0\.1:\d+: /)
    expect(said).not.toContain(away.password)
    expect(asks(proxy)).toBe(1)
    await until('it has let go of the standby', () => proxy.open === 0)
  } finally {
    await proxy.close()
  }
})

test.each(['', '?target_session_attrs=primary'])('a standby alone is not enough%s', async (more) => {
  const hosts = `127.0.0.1:${standby.port},127.0.0.1:${await nowhere()}`
  const one = database(`postgres://postgres:${new URL(standby.url).password}@${hosts}/postgres${more}`)
  expect(await codeOf(one.connect())).toBe('DATABASE_UNAVAILABLE')
  expect(await messageOf(one.connect())).toMatch(/it is a standby; .*ECONNREFUSED/)
})

test('one host that must be writable is asked too', async () => {
  const one = database(`${standby.url}?target_session_attrs=read-write`)
  expect(await messageOf(one.connect())).toMatch(/the host is not fit .*it is a standby/)
})

test('any host will do where that is said', async () => {
  const hosts = `127.0.0.1:${await nowhere()},127.0.0.1:${standby.port}`
  const password = new URL(standby.url).password
  const one = database(`postgres://postgres:${password}@${hosts}/postgres?target_session_attrs=any`)
  expect(await one.query('select pg_is_in_recovery() as is')).toEqual([{ is: true }])
})

test('a server that is set to read only is a primary, and not writable', async () => {
  const name = `reader_${databaseName()}`
  await db.sql(`create role ${name} login password 'reads'`)
  await db.sql(`alter role ${name} set default_transaction_read_only = on`)
  const hosts = `127.0.0.1:${portOf(first.url)},127.0.0.1:${portOf(second.url)}`
  const address = `postgres://${name}:reads@${hosts}/${databaseName()}`
  expect(await messageOf(database(address).connect())).toMatch(/set to read only.*set to read only/)
  expect(await database(`${address}?target_session_attrs=primary`).query('select 1 as one')).toEqual([
    { one: 1 },
  ])
})

test('the host that was taken last is tried first, by every lane', async () => {
  const from = database(bothWays())
  await first.set('refuse')
  await from.query('select 1')
  expect(second.open).toBe(1)
  await first.set('pass')
  const lane = from.lane(1, 'lane')
  open.push({ close: () => lane.closeLane() })
  await lane.query('select 1')
  expect([first.open, second.open]).toEqual([0, 2])
  second.reset()
  await second.set('refuse')
  await until('both find the other', async () => {
    await Promise.all([codeOf(from.query('select 1')), codeOf(lane.query('select 1'))])
    return first.open === 2
  })
})

test('a host that never answers costs its share of the time to connect', async () => {
  await first.set('blackhole')
  const lane = database(bothWays()).lane(1, 'lane', { connectTimeoutMs: 6_000 })
  open.push({ close: () => lane.closeLane() })
  expect(await lane.query('select 1 as one')).toEqual([{ one: 1 }])
  await second.set('blackhole')
  second.reset()
  const said = await messageOf(lane.query('select 1').catch(() => lane.query('select 1')))
  expect(said).toMatch(/No connection.*: no answer within 2700 ms; .*: no answer within 2700 ms/)
})

test('a host that dies in the midst of the question is passed by', async () => {
  const cut = first.cutAnswer(/pg_is_in_recovery/)
  expect(await database(bothWays()).query('select 1 as one')).toEqual([{ one: 1 }])
  await cut
  expect([first.open, second.open]).toEqual([0, 1])
})

test('a host that dies in the midst of its answer is passed by', async () => {
  const cut = first.cutMessage('client')
  expect(await database(bothWays()).query('select 1 as one')).toEqual([{ one: 1 }])
  await cut
})

test('with one host nothing is asked', async () => {
  await database(first.url).query('select 1')
  expect([asks(first), first.statements.length]).toEqual([0, 1])
})

test('wrong passwords everywhere are for a person to mend', async () => {
  const hosts = `127.0.0.1:${portOf(first.url)},127.0.0.1:${portOf(second.url)}`
  const rowlock = client(`postgres://nobody_here:wrong@${hosts}/${databaseName()}`)
  const worker = rowlock.worker({ handlers: [handle(note, () => {})] })
  const said = await messageOf(worker.start())
  expect(said).toMatch(/does not let this worker in \((28P01|08P01)\)/)
  await worker.stop()
})

test('a pool never has more connections than it may, however many wait for one', async () => {
  await first.set('refuse')
  const one = new Database({ connectionString: bothWays(), maxConnections: 2 })
  open.push(one)
  let most = 0
  await Promise.all(
    Array.from({ length: 12 }, async () => {
      await one.query('select 1')
      most = Math.max(most, second.open)
    }),
  )
  expect(most).toBe(2)
})

test('a lane that ends while it looks for a host leaves nothing open', async () => {
  await first.set('blackhole')
  await second.set('blackhole')
  const lane = database(bothWays()).lane(1, 'lane')
  const connecting = messageOf(lane.connect())
  await until('it waits', () => first.open === 1)
  await lane.closeLane(50)
  // The second one was not waited for.
  expect(await connecting).toMatch(/^No connection to the database/)
  expect(await connecting).not.toContain('no answer within')
})

test('what breaks while a host is asked is heard, and by nobody else', async () => {
  const { Client } = reaching(bothWays()) as { Client: new () => pg.Client }
  const one = new Client()
  const listeners: number[] = []
  const emit = one.emit.bind(one)
  one.emit = (name: string, ...rest: unknown[]) => {
    if (name === 'error') listeners.push(one.listenerCount('error'))
    return name === 'error' || emit(name as 'error', ...(rest as [Error]))
  }
  const cut = first.cutAnswer(/pg_is_in_recovery/)
  await one.connect()
  await cut
  expect(listeners.length).toBeGreaterThan(0)
  expect(new Set(listeners)).toEqual(new Set([1]))
  await one.end()
})

test('a worker runs jobs through several hosts, hears notices, and goes over to the other host', async () => {
  const rowlock = client(bothWays())
  const seen: unknown[] = []
  const worker = rowlock.worker({
    handlers: [handle(note, ({ input }) => void seen.push(input))],
    lease: 2_000,
    pollListening: 60_000,
    listenConnectionString: bothWays(),
  })
  await worker.start()
  await rowlock.enqueue(note, 'here')
  await until('it ran', () => seen.includes('here'))
  await first.set('refuse')
  first.reset()
  await until(
    'the job is taken there',
    async () => (await codeOf(rowlock.enqueue(note, 'there'))) === 'no error',
  )
  await until('it ran there', () => seen.includes('there'))
  await worker.stop()
})
