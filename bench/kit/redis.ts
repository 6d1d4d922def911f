// A Redis of this run's own, for the one peer that lives there. That it is not installed is said, not failed.

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processCpuUs } from './cpu.ts'

/** A running Redis. */
export interface BenchRedis {
  readonly url: string
  readonly version: string
  /** CPU time of the server so far. Unit: µs. */
  cpuUs(): number
  stop(): Promise<void>
}

/**
 * Start one, with an append-only file that is flushed before each answer (`appendfsync always`, the durability that
 * `synchronous_commit = on` has), or without any file. Undefined when redis-server is not installed.
 */
export async function startRedis({ aof }: { readonly aof: boolean }): Promise<BenchRedis | undefined> {
  const program = (process.env.PATH ?? '').split(':').map((folder) => join(folder, 'redis-server'))
  const found = program.find((path) => existsSync(path))
  if (found === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'rowlock-bench-redis-'))
  const port = await freePort()
  const log = join(folder, 'log')
  const file = aof ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
  const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--logfile', log, '--save', '']
  const server = spawn(found, [...own, ...file], { stdio: 'ignore' })
  const kill = () => server.kill('SIGKILL')
  process.once('exit', kill)
  await untilReady(server, log)
  return {
    url: `redis://127.0.0.1:${port}`,
    version: /Redis version=([\d.]+)/.exec(readFileSync(log, 'utf8'))?.[1] ?? 'unknown',
    cpuUs: () => processCpuUs(server.pid!) ?? Number.NaN,
    async stop() {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      if (server.exitCode === null && server.kill()) await ended
      process.removeListener('exit', kill)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo
      server.close(() => resolve(port))
    })
  })
}

async function untilReady(server: ChildProcess, log: string): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!existsSync(log) || !readFileSync(log, 'utf8').includes('Ready to accept connections')) {
    if (server.exitCode !== null || performance.now() > deadline)
      throw new Error('redis-server does not start')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
