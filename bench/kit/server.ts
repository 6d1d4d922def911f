// The server of a run: an embedded PostgreSQL below the system's temporary folder, removed at the end.

import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type EmbeddedOptions, startEmbedded } from '../../src/embedded/index.ts'

/** How a server differs from that of most scenarios. */
export interface ServerOptions {
  /** 14 to 18. Default: that of the command line, else 18. */
  readonly major?: number
  /** Added to {@link SETTINGS}. */
  readonly settings?: NonNullable<EmbeddedOptions['settings']>
}

/** A running server. */
export interface BenchServer {
  /** Superuser, database `postgres`. */
  readonly url: string
  /** The postmaster's process id. */
  readonly pid: number
  readonly version: string
  readonly settings: Readonly<Record<string, unknown>>
  /** Connected to `postgres` for the whole run: for counting, never for what is measured. */
  readonly admin: pg.Client
  /** A fresh database; one of the same name is dropped first. Answers its URL. */
  database(name: string, template?: string): Promise<string>
  /** Drop a database, whoever is connected. */
  drop(name: string): Promise<void>
  stop(): Promise<void>
}

/** Durability is PostgreSQL's default; memory and checkpoints are set so that no contender pays for another's. */
export const SETTINGS = {
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  min_wal_size: '2GB',
  checkpoint_timeout: '1h',
  max_connections: 200,
  synchronous_commit: 'on',
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.max': 10_000,
  'pg_stat_statements.track_utility': 'on',
} as const

const WAL_FILES = 128
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Start a server in a folder of its own. Majors below 18 must have been installed by the tests on that major. */
export async function startServer({ major = 18, settings = {} }: ServerOptions = {}): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'rowlock-bench-'))
  // Started by root, the server runs as another user: what it cannot pass it would be given a place beside.
  chmodSync(folder, 0o711)
  const all = { ...SETTINGS, ...settings }
  const server = await startEmbedded({
    dataDir: join(folder, 'pg'),
    from: join(ROOT, 'dev/postgres'),
    settings: all as NonNullable<EmbeddedOptions['settings']>,
    ...binariesOf(major),
  }).catch((error) => {
    rmSync(folder, { recursive: true, force: true })
    throw error
  })
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query('create extension pg_stat_statements')
  await recycleWal(admin)
  const drop = async (name: string): Promise<void> => {
    await admin.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`)
  }
  return {
    url: server.url,
    pid: server.pid,
    version: server.version,
    settings: all,
    admin,
    drop,
    async database(name, template) {
      await drop(name)
      const from = template === undefined ? '' : ` template ${pg.escapeIdentifier(template)}`
      await admin.query(`create database ${pg.escapeIdentifier(name)}${from}`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      return url.href
    },
    async stop() {
      await admin.end().catch(() => {})
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * A server that has run for a while writes its WAL into files that it used before; a new one makes each of 16 MB first,
 * during which every commit waits. Make as many as `min_wal_size` keeps, and let a checkpoint set them aside for use.
 */
async function recycleWal(admin: pg.Client): Promise<void> {
  for (let n = 0; n < WAL_FILES; n++) {
    await admin.query(`select pg_logical_emit_message(false, 'recycled', ''), pg_switch_wal()`)
  }
  await admin.query('checkpoint')
}

function binariesOf(major: number): { binaries?: string } {
  if (major === 18) return {}
  const binaries = join(ROOT, `artifacts/majors/node_modules/pg${major}/native/bin`)
  if (existsSync(binaries)) return { binaries }
  throw new Error(`PostgreSQL ${major} is not installed here: ./check --pg ${major} fetches it`)
}
