import { readdirSync, readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { home, query, start } from './scratch.ts'

const reached = (host: string, port: number, timeout = 2_000) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })

test('nobody but 127.0.0.1 is listened to', async () => {
  const server = await start({ dataDir: await home() })
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
  // 127.0.0.2 is this machine as well (on Linux): it would be reached by a server that listens everywhere.
  const others = ['127.0.0.2', ...own].filter((address) => address !== '127.0.0.1')
  expect(await reached('127.0.0.1', server.port, 60_000)).toBe(true)
  expect(await Promise.all(others.map((host) => reached(host, server.port)))).toEqual(others.map(() => false))
  expect(await query(server.url, "select current_setting('unix_socket_directories') as folders")).toEqual([
    { folders: '' },
  ])
})

test('only the right password is let in, hashed with scram', async () => {
  const server = await start({ dataDir: await home() })
  const wrong = new URL(server.url)
  wrong.password = 'guess'
  await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  expect(
    await query(
      server.url,
      "select rolpassword like 'SCRAM-SHA-256$%' as scram from pg_authid where rolcanlogin",
    ),
  ).toEqual([{ scram: true }])
  expect(
    await query(
      server.url,
      "select distinct auth_method as method from pg_hba_file_rules where type <> 'local'",
    ),
  ).toEqual([{ method: 'scram-sha-256' }])
})

test('the password is in files of their owner only, and in nobody else’s sight', async () => {
  const dataDir = await home()
  const server = await start({ dataDir })
  const { password } = new URL(server.url)
  expect(password.length).toBeGreaterThan(20)
  for (const name of readdirSync(dataDir).filter((name) => name !== 'turns' && name !== 'data')) {
    expect([name, statSync(join(dataDir, name)).mode & 0o777]).toEqual([name, 0o600])
  }
  expect(statSync(join(dataDir, 'data')).mode & 0o777).toBe(0o700)
  expect(readFileSync(join(dataDir, 'password'), 'utf8')).toBe(`${password}\n`)
  const token = JSON.parse(readFileSync(join(dataDir, 'keeper.json'), 'utf8')).token as string
  for (const secret of [password, token]) {
    expect(processTexts().filter((text) => text.includes(secret))).toEqual([])
  }
})

/** The command lines and environments of all processes. */
function processTexts(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => ['cmdline', 'environ'].map((file) => read(`/proc/${pid}/${file}`)))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
