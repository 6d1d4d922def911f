// Runs one PostgreSQL for a whole run of the tests, and leaves nothing behind: no process, no folder.
//
// ROWLOCK_TEST_URL names a server to use instead (as superuser), ROWLOCK_TEST_TEMPLATE a template on it; PG_MAJOR
// picks another major, 14 to 17. ROWLOCK_TEST_POOLER=1 puts PgBouncer in transaction mode, two connections a database
// and role, between Rowlock and the server (pooled.ts says which tests cannot go that way).

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbedded } from 'rowlock/embedded'
import type { TestProject } from 'vitest/node'
import { type Bouncer, findBouncer, startBouncer } from '../pooler/pgbouncer.ts'
import { programs } from './majors.ts'
import { makeTemplate } from './template.ts'

declare module 'vitest' {
  interface ProvidedContext {
    adminUrl: string
    /** Empty: there is none. */
    poolerUrl: string
  }
}

/** What the tests' server is set to: as a user's would be, but for fsync. */
const SETTINGS = {
  max_connections: 200,
  shared_buffers: '128MB',
  autovacuum: true,
  max_prepared_transactions: 10,
  track_io_timing: false,
}

let server: EmbeddedServer | undefined
let folder: string | undefined
let bouncer: Bouncer | undefined

export async function setup(project: TestProject): Promise<void> {
  const adminUrl = await startServer()
  try {
    bouncer = await startPooler(adminUrl)
  } catch (error) {
    await teardown()
    throw error
  }
  project.provide('adminUrl', adminUrl)
  project.provide('poolerUrl', bouncer?.url ?? '')
}

async function startPooler(adminUrl: string): Promise<Bouncer | undefined> {
  if (process.env.ROWLOCK_TEST_POOLER !== '1') return undefined
  const program = findBouncer()
  if (program === undefined) throw new Error('ROWLOCK_TEST_POOLER: PgBouncer is not installed')
  return startBouncer(program, adminUrl, 2, { asThemselves: true })
}

/** Answers the URL of its superuser. */
async function startServer(): Promise<string> {
  const url = process.env.ROWLOCK_TEST_URL
  if (url) {
    if (!process.env.ROWLOCK_TEST_TEMPLATE) await makeTemplate(url)
    return url
  }
  sweep()
  folder = mkdtempSync(join(tmpdir(), `rowlock-test-${process.pid}-`))
  try {
    server = await startEmbedded({
      dataDir: folder,
      ...programs(),
      settings: SETTINGS,
      fsync: false,
    })
    await makeTemplate(server.url)
  } catch (error) {
    await teardown()
    throw error
  }
  return server.url
}

export async function teardown(): Promise<void> {
  await bouncer?.stop()
  await server?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
}

/** Remove what runs that were killed have left: their server has stopped by itself, their folder is still there. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^rowlock-test-(\d+)-/.exec(name)?.[1]
    if (!pid) continue
    try {
      process.kill(Number(pid), 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') remove(join(tmpdir(), name))
    }
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // Another user's; left to that user's next run.
  }
}
