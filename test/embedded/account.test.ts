import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findAccount } from '../../src/embedded/account.ts'
import { cacheFolder } from '../../src/embedded/cache.ts'
import { reachable } from '../../src/embedded/reach.ts'
import { other } from './other.ts'
import { copyPrograms, home, query, scratch, start, uidOf } from './scratch.ts'

const root = process.getuid?.() === 0

test('a path with spaces and quotes works', async () => {
  const server = await start({ dataDir: join(scratch(), "it's my own", 'base') })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('the account is looked up: the owner of the data, else postgres, else nobody, never root', () => {
  const passwd = join(scratch(), 'passwd')
  const lines = [
    'root:x:0:0::/root:/bin/sh',
    'nobody:x:99:98::/:/bin/false',
    'ann:x:1000:1001::/home/ann:/bin/sh',
  ]
  writeFileSync(passwd, lines.join('\n'))
  expect(findAccount(undefined, passwd)).toEqual({ name: 'nobody', uid: 99, gid: 98 })
  expect(findAccount(1000, passwd).name).toBe('ann')
  expect(findAccount(0, passwd).name).toBe('nobody')
  writeFileSync(passwd, [...lines, 'postgres:x:5:6::/:/bin/sh'].join('\n'))
  expect(findAccount(4242, passwd)).toEqual({ name: 'postgres', uid: 5, gid: 6 })
  writeFileSync(passwd, lines[0] ?? '')
  expect(() => findAccount(undefined, passwd)).toThrow(
    expect.objectContaining({ code: 'EMBEDDED_UNAVAILABLE' }),
  )
})

describe.runIf(root)('started by root', () => {
  test('PostgreSQL runs as the account, which can write its cluster and nothing else', async () => {
    const dataDir = await home()
    const server = await start({ dataDir })
    expect(uidOf(server.pid)).toBe(findAccount().uid)
    expect(lstatSync(join(dataDir, 'data')).uid).toBe(findAccount().uid)
    expect(lstatSync(dataDir)).toMatchObject({
      uid: 0,
      mode: expect.toSatisfy((mode) => (mode & 0o777) === 0o711),
    })
  })

  test('a cluster that root owns is handed over to the account', async () => {
    const dataDir = await home()
    await (await start({ dataDir })).stop()
    execFileSync('chown', ['-R', 'root:root', join(dataDir, 'data')])
    expect(uidOf((await start({ dataDir })).pid)).toBe(findAccount().uid)
  })

  test('data and programs in a closed folder are put where the account reaches them, and that is said', async () => {
    const closed = join(scratch(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const binaries = copyPrograms(join(closed, 'native'))
    const said: string[] = []
    const asked = { dataDir: join(closed, 'data'), binaries, log: (line: string) => void said.push(line) }
    const server = await start(asked)
    const folders = said.map((line) => /(?:in|copy in) (\/\S*rowlock-[^ ;]*)/.exec(line)?.[1] ?? 'not named')
    onTestFinished(() => {
      for (const folder of folders) rmSync(folder.replace(/\/native$/, ''), { recursive: true, force: true })
    })
    expect(said).toHaveLength(2)
    for (const folder of folders) expect(existsSync(folder)).toBe(true)
    await query(server.url, 'create table boat as select 2 as seats')
    await server.stop()
    const again = await start(asked)
    expect(await query(again.url, 'select seats from boat')).toEqual([{ seats: 2 }])
    expect(existsSync(asked.dataDir)).toBe(false)
    await again.stop()
  })

  test('an ordinary user runs it as itself, and keeps it when root attaches or starts it', async () => {
    const dataDir = join(scratch(), 'own')
    const nobody = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))
    mkdirSync(dataDir)
    chownSync(dataDir, nobody, nobody)
    const own = await other({ dataDir }, { uid: nobody, gid: nobody })
    expect(own).toMatchObject({ attached: false })
    expect(uidOf(own.pid)).toBe(nobody)
    expect(lstatSync(dataDir).mode & 0o777).toBe(0o700)
    const attached = await start({ dataDir })
    expect(attached).toMatchObject({ attached: true, pid: own.pid })
    own.child.kill('SIGKILL')
    await own.ended
    await attached.stop()
    const byRoot = await start({ dataDir })
    expect(uidOf(byRoot.pid)).toBe(nobody)
    await byRoot.stop()
    const back = await other({ dataDir }, { uid: nobody, gid: nobody })
    expect(uidOf(back.pid)).toBe(nobody)
  })

  test('a server of root is out of reach for an ordinary user, who is told so', async () => {
    const dataDir = await home()
    await start({ dataDir })
    const uid = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))
    expect(await other({ dataDir }, { uid, gid: uid })).toMatchObject({ error: 'EMBEDDED_UNAVAILABLE' })
  })

  test('what an account can reach is read from owners and modes on the whole way', () => {
    const folder = scratch()
    const account = findAccount()
    const file = join(folder, 'a', 'file')
    // Whatever the umask is.
    mkdirSync(join(folder, 'a'))
    chmodSync(join(folder, 'a'), 0o755)
    writeFileSync(file, '')
    chmodSync(file, 0o644)
    expect(reachable(file, account)).toBe(true)
    chmodSync(file, 0o600)
    expect(reachable(file, account)).toBe(false)
    chownSync(file, account.uid, 0)
    expect(reachable(file, account)).toBe(true)
    chmodSync(join(folder, 'a'), 0o700)
    expect(reachable(file, account)).toBe(false)
    symlinkSync(file, join(folder, 'link'))
    expect(reachable(join(folder, 'link'), account)).toBe(false)
  })
})

test('a cache folder is the same each time, and refused when it is a link or not ours alone', () => {
  const key = scratch()
  const folder = cacheFolder('check', key)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  expect(cacheFolder('check', key)).toBe(folder)
  expect(cacheFolder('check', `${key}/other`)).not.toBe(folder)
  rmSync(`${cacheFolder('check', `${key}/other`)}`, { recursive: true })
  const refused = expect.objectContaining({ code: 'EMBEDDED_UNAVAILABLE' })
  chmodSync(folder, 0o777)
  expect(() => cacheFolder('check', key)).toThrow(refused)
  rmSync(folder, { recursive: true })
  symlinkSync(key, folder)
  expect(() => cacheFolder('check', key)).toThrow(refused)
})
