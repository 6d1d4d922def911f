import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { startEmbedded } from 'rowlock/embedded'
import { expect, test } from 'vitest'
import { startedAt } from '../../src/embedded/alive.ts'
import { other } from './other.ts'
import { home, parentOf, query, scratch, start } from './scratch.ts'
import { until } from './until.ts'

test('a server keeps its rows and its password from one start to the next', async () => {
  const dataDir = join(scratch(), 'a', 'b')
  const first = await start({ dataDir })
  await query(first.url, 'create table boat as select 8 as seats')
  await first.stop()
  expect(startedAt(first.pid)).toBeUndefined()
  expect(existsSync(join(dataDir, 'data/postmaster.pid'))).toBe(false)
  const second = await start({ dataDir })
  expect(second.attached).toBe(false)
  expect(second.pid).not.toBe(first.pid)
  expect(new URL(second.url).password).toBe(new URL(first.url).password)
  expect(await query(second.url, 'select seats from boat')).toEqual([{ seats: 8 }])
  expect(await query(second.url, "select current_setting('server_version') as v")).toEqual([
    { v: expect.stringContaining(second.version) },
  ])
})

test('whoever comes second attaches, and the server stops with the last to let go', async () => {
  const dataDir = await home()
  const first = await start({ dataDir })
  const second = await start({ dataDir, from: '/nowhere' })
  const third = await other({ dataDir })
  expect([first.attached, second.attached, third.attached]).toEqual([false, true, true])
  expect(third).toMatchObject({ pid: first.pid, port: first.port, url: second.url, version: first.version })
  await first.stop()
  await first.stop()
  expect(await query(third.url, 'select 1 as one')).toEqual([{ one: 1 }])
  third.child.stdin?.write('stop\n')
  await third.ended
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  expect(startedAt(first.pid)).toBeUndefined()
})

test('ten that start at the same moment get one server', async () => {
  const dataDir = join(scratch(), 'new')
  const all = await Promise.all([
    ...Array.from({ length: 6 }, () => start({ dataDir })),
    ...Array.from({ length: 4 }, () => other({ dataDir })),
  ])
  expect(new Set(all.map(({ pid }) => pid)).size).toBe(1)
  expect(all.filter(({ attached }) => !attached)).toHaveLength(1)
})

test('one that starts while the last lets go gets a server that stays', async () => {
  const dataDir = await home()
  let server = await start({ dataDir })
  for (let round = 0; round < 5; round += 1) {
    const [, next] = await Promise.all([server.stop(), start({ dataDir })])
    expect(await query(next.url, 'select 1 as one')).toEqual([{ one: 1 }])
    server = next
  }
})

test('a process that neither stops its server nor does anything else ends, and its server with it', async () => {
  const done = await other({ dataDir: await home(), keep: false })
  expect(done.pid).toBeGreaterThan(0)
  await done.ended
  await until('the server is gone', () => startedAt(done.pid) === undefined)
})

test('settings, port and fsync are as asked', async () => {
  const odd = "it's a \\ path"
  const settings = { work_mem: '5MB', max_connections: 17, autovacuum: false, 'rowlock.odd': odd }
  const dataDir = await home()
  const startAt = async (port: number) => ({
    port,
    server: await start({ dataDir, port, fsync: true, settings }),
  })
  // Somebody else may take a port that was just freed.
  const { port, server } = await startAt(await freed()).catch(async () => startAt(await freed()))
  expect(server.port).toBe(port)
  expect(
    await query(
      server.url,
      `select current_setting('work_mem') as a, current_setting('max_connections') as b,
              current_setting('autovacuum') as c, current_setting('rowlock.odd') as d,
              current_setting('fsync') as e`,
    ),
  ).toEqual([{ a: '5MB', b: '17', c: 'off', d: odd, e: 'on' }])
})

test('a port that is taken is refused by name', async () => {
  const taken = createServer()
  const port = await listen(taken)
  await expect(start({ dataDir: await home(), port })).rejects.toMatchObject({
    code: 'EMBEDDED_UNAVAILABLE',
    message: expect.stringContaining(`port ${port} is taken`),
  })
  taken.close()
})

test('a setting that PostgreSQL does not know is said with the words of its log', async () => {
  await expect(start({ dataDir: await home(), settings: { oars: 8 } })).rejects.toMatchObject({
    code: 'EMBEDDED_UNAVAILABLE',
    message: expect.stringContaining('unrecognized configuration parameter "oars"'),
  })
})

test('what cannot be asked for is refused before anything is made', async () => {
  const dataDir = join(scratch(), 'new')
  const refused = { code: 'INVALID_OPTION' }
  await expect(start({ dataDir, settings: { listen_addresses: '*' } })).rejects.toMatchObject(refused)
  await expect(start({ dataDir, settings: { 'a = 1\nb': 1 } })).rejects.toMatchObject(refused)
  await expect(start({ dataDir, settings: { a: '1\nb = 2' } })).rejects.toMatchObject(refused)
  await expect(start({ dataDir, port: 0 })).rejects.toMatchObject(refused)
  await expect(startEmbedded({ datadir: dataDir } as object)).rejects.toMatchObject(refused)
  expect(existsSync(dataDir)).toBe(false)
})

test('a folder that holds something else is left alone', async () => {
  const dataDir = join(scratch(), 'work')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'thesis.txt'), '')
  await expect(start({ dataDir })).rejects.toMatchObject({ code: 'INVALID_OPTION', path: 'dataDir' })
  expect(readdirSync(dataDir)).toEqual(['thesis.txt'])
})

test('a cluster of another major is refused', async () => {
  const dataDir = await home()
  await (await start({ dataDir })).stop()
  writeFileSync(join(dataDir, 'data/PG_VERSION'), '9\n')
  await expect(start({ dataDir })).rejects.toMatchObject({
    code: 'EMBEDDED_UNAVAILABLE',
    message: expect.stringContaining('of PostgreSQL 9'),
  })
})

test('the keeper stands in a session of its own, so that Ctrl-C reaches node first', async () => {
  const server = await start({ dataDir: await home() })
  const keeper = parentOf(server.pid)
  const session = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[3]
  expect(parentOf(keeper)).toBe(process.pid)
  expect(session(keeper)).toBe(String(keeper))
  expect(statSync(`/proc/${server.pid}`).isDirectory()).toBe(true)
})

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
}

async function freed(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}
