// What a stretch of work cost the server, counted and not timed: CPU, WAL, commits, statements, buffers, dead tuples.

import pg from 'pg'
import { serverCpuUs } from './cpu.ts'
import type { BenchServer } from './server.ts'

/** Counts of one stretch. */
export interface Counted {
  readonly pgCpuUs: number
  readonly walBytes: number
  readonly commits: number
  readonly statements: number
  /** Shared buffers that statements touched, found or read. */
  readonly buffers: number
  /** Row versions that were left dead: one a delete, one an update. Autovacuum does not lessen it. */
  readonly deadTuples: number
}

/** A stretch that is being counted. */
export interface Counting {
  /** Look at what is exact at once (CPU, WAL, statements, buffers): when the work is done. */
  mark(): Promise<void>
  /** All counts. Sessions report their commits and rows when they end: waits until those of the database have. */
  done(): Promise<Counted>
}

interface Exact {
  readonly cpuUs: number
  readonly wal: number
  readonly statements: number
  readonly buffers: number
}

/**
 * Begin to count what happens in one database. WAL and CPU are the server's: measure one contender at a time. Begins
 * with a checkpoint, since pages written in full after one would be counted to whoever comes first.
 */
export async function counting(server: BenchServer, database: string): Promise<Counting> {
  await server.admin.query('checkpoint')
  await flushed(server, database)
  const rows = await rowsOf(server, database)
  const before = await exact(server, database)
  let after: Exact | undefined
  return {
    async mark() {
      after = await exact(server, database)
    },
    async done() {
      after ??= await exact(server, database)
      await untilAlone(server, database)
      const now = await rowsOf(server, database)
      return {
        pgCpuUs: after.cpuUs - before.cpuUs,
        walBytes: after.wal - before.wal,
        commits: now.commits - rows.commits,
        statements: after.statements - before.statements,
        buffers: after.buffers - before.buffers,
        deadTuples: now.dead - rows.dead,
      }
    },
  }
}

/** Counts per job. */
export function perJob(counted: Counted, jobs: number): Record<keyof Counted, number> {
  return Object.fromEntries(Object.entries(counted).map(([name, n]) => [name, n / jobs])) as Record<
    keyof Counted,
    number
  >
}

async function exact(server: BenchServer, database: string): Promise<Exact> {
  const { rows } = await server.admin.query(
    `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as wal,
            coalesce(sum(calls), 0)::float8 as statements,
            coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as buffers
       from pg_stat_statements
      where dbid = (select oid from pg_database where datname = $1)`,
    [database],
  )
  return { ...rows[0], cpuUs: serverCpuUs(server.pid) ?? Number.NaN }
}

async function rowsOf(server: BenchServer, database: string): Promise<{ commits: number; dead: number }> {
  const { rows } = await server.admin.query(
    `select xact_commit::float8 as commits, (tup_updated + tup_deleted)::float8 as dead
       from pg_stat_database where datname = $1`,
    [database],
  )
  return rows[0] ?? { commits: 0, dead: 0 }
}

/** Sessions that are still open report what they did at most once a second: have them report now, by waiting. */
async function flushed(server: BenchServer, database: string): Promise<void> {
  const { rows } = await server.admin.query(
    `select count(*)::integer as n from pg_stat_activity where datname = $1 and query <> ''`,
    [database],
  )
  if (rows[0].n > 0) await new Promise((resolve) => setTimeout(resolve, 1_100))
}

async function untilAlone(server: BenchServer, database: string): Promise<void> {
  const deadline = performance.now() + 5_000
  for (;;) {
    const { rows } = await server.admin.query(
      `select count(*)::integer as n from pg_stat_activity
        where datname = $1 and backend_type = 'client backend'`,
      [database],
    )
    if (rows[0].n === 0) return
    if (performance.now() > deadline) return flushed(server, database)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A client of one database of the server; the caller ends it. */
export async function clientOf(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}
