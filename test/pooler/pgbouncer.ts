// PgBouncer in transaction mode, with its own configuration in a folder of its own, on loopback only.

import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { until } from '../support/until.ts'

export interface Bouncer {
  /** The database through the pooler. */
  readonly url: string
  /** Rows of its admin console. */
  show(what: 'pools' | 'servers' | 'clients'): Promise<Record<string, string>[]>
  stop(): Promise<void>
}

/** Where the program is, if anywhere. */
export function findBouncer(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))
}

/** How a pooler is set up besides the size of its pools. */
interface BouncerOptions {
  /** Every client is let in as itself, by the password it has on the server; else all are one user of the server. */
  readonly asThemselves?: boolean
}

export async function startBouncer(
  program: string,
  url: string,
  poolSize: number,
  { asThemselves = false }: BouncerOptions = {},
): Promise<Bouncer> {
  const target = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'rowlock-pgbouncer-'))
  const port = await freePort()
  const user = decodeURIComponent(target.username)
  const password = decodeURIComponent(target.password)
  const login = asThemselves ? `auth_user=${user}` : `user=${user} password=${password}`
  writeFileSync(join(folder, 'users'), `"${user}" "${password}"\n`)
  writeFileSync(
    join(folder, 'ini'),
    `[databases]
* = host=${target.hostname} port=${target.port} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = ${asThemselves ? 'scram-sha-256' : 'any'}
auth_file = ${join(folder, 'users')}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
admin_users = ${user}
server_tls_sslmode = disable
`,
  )
  const args = [join(folder, 'ini')]
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    const id = (flag: string) => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout)
    for (const path of [folder, join(folder, 'ini'), join(folder, 'users')]) {
      chownSync(path, id('-u'), id('-g'))
      chmodSync(path, 0o700)
    }
    args.unshift('-u', 'nobody')
  }
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (data) => {
    said += data
  })
  let isGone = false
  child.on('exit', () => {
    isGone = true
  })
  const kill = () => void child.kill('SIGKILL')
  process.on('exit', kill)
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String(port)
  const console_ = new URL(through)
  console_.pathname = '/pgbouncer'
  const stop = async () => {
    child.kill('SIGTERM')
    await until('PgBouncer has ended', () => isGone)
    process.off('exit', kill)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until('PgBouncer answers', async () => {
      if (isGone) throw new Error(`PgBouncer ended: ${said}`)
      const client = new pg.Client({ connectionString: through.href })
      client.on('error', () => {})
      try {
        await client.connect()
        return await client.query('select 1')
      } catch {
        return false
      } finally {
        await client.end().catch(() => {})
      }
    })
  } catch (error) {
    if (!isGone) await stop()
    throw new Error(`${(error as Error).message}: ${said.slice(-2_000)}`)
  }
  return {
    url: through.href,
    async show(what) {
      const client = new pg.Client({ connectionString: console_.href })
      await client.connect()
      try {
        return (await client.query(`show ${what}`)).rows
      } finally {
        await client.end()
      }
    },
    stop,
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
