// A primary and a standby that streams from it, each on a port of its own; and what a failover does to them.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { untilGone } from '../src/embedded/alive.ts'
import { type EmbeddedServer, startEmbedded } from '../src/embedded/index.ts'
import { type PostgresProxy, startProxy } from './proxy.ts'

/** How a pair is made. */
export interface PairOptions {
  /** Where the programs are, as `startEmbedded` takes it. */
  readonly programs: { readonly from?: string; readonly binaries?: string }
  /** A commit is acknowledged when the standby has it on disk. */
  readonly isSynchronous: boolean
}

/** Two servers with one history. */
export interface Pair {
  readonly primary: EmbeddedServer
  readonly standby: EmbeddedServer
  /** Where the standby is streamed to: what happens to it, happens to replication alone. */
  readonly stream: PostgresProxy
  /** One address with both hosts. */
  readonly bothHosts: string
  /** Wait until the standby has everything that was committed before this call. */
  caughtUp(): Promise<void>
  /** As a crash: nobody is told anything, and it does not come back. */
  killPrimary(): Promise<void>
  /** Until the standby takes writes. */
  promote(): Promise<void>
  /** Run a statement on one of the two. */
  ask(server: EmbeddedServer, text: string): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

const NAME = 'walreceiver'
const LOOK_EVERY_MS = 20

/**
 * Start both; the standby is a copy that was made while the primary ran. Without fsync: processes die here, and no
 * machine.
 */
export async function startPair({ programs, isSynchronous }: PairOptions): Promise<Pair> {
  const folder = () => mkdtempSync(join(tmpdir(), `rowlock-faults-${process.pid}-`))
  const [here, there] = [folder(), folder()]
  const settings = { max_connections: 100, shared_buffers: '64MB', checkpoint_timeout: '1h' }
  const started: { stop(): Promise<unknown> }[] = []
  const stop = async () => {
    for (const one of started.reverse()) await one.stop()
    for (const each of [here, there]) rmSync(each, { recursive: true, force: true })
  }
  try {
    const primary = await startEmbedded({ dataDir: here, ...programs, settings, fsync: false })
    started.push(primary)
    const stream = await startProxy(primary.url)
    started.push({ stop: () => stream.close() })
    await copyCluster(primary.url, here, there)
    const { password, port } = new URL(stream.url)
    const who = `user=postgres password=${password} application_name=${NAME}`
    const primary_conninfo = `host=127.0.0.1 port=${port} ${who} sslmode=disable`
    const standby = await startEmbedded({
      dataDir: there,
      ...programs,
      settings: { ...settings, primary_conninfo },
      fsync: false,
    })
    started.push(standby)
    if (isSynchronous) {
      await ask(primary, `alter system set synchronous_standby_names = '${NAME}'`)
      await ask(primary, 'select pg_reload_conf()')
      await until(primary, `select sync_state = 'sync' as is from pg_stat_replication`)
    }
    const address = new URL(primary.url)
    return {
      primary,
      standby,
      stream,
      bothHosts: primary.url.replace(address.host, `${address.host},127.0.0.1:${standby.port}`),
      async caughtUp() {
        const [row] = await ask(primary, 'select pg_current_wal_insert_lsn() as lsn')
        await until(primary, `select replay_lsn >= '${row!.lsn}' as is from pg_stat_replication`)
      },
      async killPrimary() {
        process.kill(primary.pid, 'SIGQUIT')
        if (!(await untilGone(primary.pid, 10_000))) throw new Error('the primary outlived SIGQUIT')
      },
      async promote() {
        await ask(standby, 'select pg_promote(true, 60)')
        await until(standby, 'select not pg_is_in_recovery() as is')
      },
      ask,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What pg_basebackup does, which is not among the programs. */
async function copyCluster(url: string, from: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows: at } = await client.query(
      "select current_setting('server_version_num')::integer / 10000 as major",
    )
    const [begin, end] =
      at[0].major < 15 ? ['pg_start_backup', 'pg_stop_backup'] : ['pg_backup_start', 'pg_backup_stop']
    // Before 15 its third argument says that others may do so too; since then all may.
    await client.query(`select ${begin}('standby', true${at[0].major < 15 ? ', false' : ''})`)
    mkdirSync(join(to, 'turns'), { recursive: true })
    mkdirSync(join(to, 'data'), { mode: 0o700 })
    writeFileSync(join(to, 'password'), readFileSync(join(from, 'password')), { mode: 0o600 })
    for (const name of readdirSync(join(from, 'data'))) {
      if (name === 'postmaster.pid' || name === 'postmaster.opts') continue
      cpSync(join(from, 'data', name), join(to, 'data', name), { recursive: true })
    }
    const { rows } = await client.query(
      `select labelfile from ${end}(${at[0].major < 15 ? 'false, false' : 'false'})`,
    )
    writeFileSync(join(to, 'data/backup_label'), rows[0].labelfile)
    writeFileSync(join(to, 'data/standby.signal'), '')
  } finally {
    await client.end()
  }
}

async function ask({ url }: EmbeddedServer, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'faults' })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

async function until(server: EmbeddedServer, text: string): Promise<void> {
  const end = performance.now() + 60_000
  for (;;) {
    const [row] = await ask(server, text)
    if (row?.is === true) return
    if (performance.now() > end) throw new Error(`it was never so: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}
