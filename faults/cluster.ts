// A PostgreSQL of the loop's own, on disk as it would be in earnest, that can be restarted under those who use it.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type EmbeddedServer, startEmbedded } from '../src/embedded/index.ts'

/** A server that comes back on the same port. */
export interface Cluster {
  readonly url: string
  /** Fast: sessions are told, and all is written. Immediate: as a crash; what was committed is recovered. */
  restart(how: 'fast' | 'immediate'): Promise<void>
  /** Errors in the server's log, figures left out, with how often: it outlives a crash, which counters do not. */
  complaints(): ReadonlyMap<string, number>
  stop(): Promise<void>
}

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** Start one below the temporary folder. fsync is on: a crash must lose nothing that was acknowledged. */
export async function startCluster(): Promise<Cluster> {
  sweep()
  const dataDir = mkdtempSync(join(tmpdir(), `rowlock-faults-${process.pid}-`))
  const options = {
    dataDir,
    from: fileURLToPath(new URL('../dev/postgres', import.meta.url)),
    settings: {
      max_connections: 100,
      shared_buffers: '64MB',
      restart_after_crash: true,
      checkpoint_timeout: '1h',
    },
  }
  let server: EmbeddedServer
  try {
    server = await startEmbedded(options)
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true })
    throw error
  }
  const { port, url } = server
  const before: EmbeddedServer[] = []
  let restarting: Promise<void> = Promise.resolve()
  const again = async (how: keyof typeof SIGNALS) => {
    process.kill(server.pid, SIGNALS[how])
    before.push(server)
    const { pid } = server
    // The old one may still be on its way out: attaching to it is not what is wanted.
    for (;;) {
      const next = await startEmbedded({ ...options, port })
      if (next.pid !== pid) {
        server = next
        return
      }
      await next.stop()
    }
  }
  return {
    url,
    restart(how) {
      restarting = restarting.then(() => again(how))
      return restarting
    },
    complaints: () => complaintsIn(readFileSync(join(dataDir, 'postgres.log'), 'utf8')),
    async stop() {
      await restarting.catch(() => {})
      await Promise.all([...before, server].map((each) => each.stop().catch(() => {})))
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function complaintsIn(log: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const [, what] of log.matchAll(/^.*?((?:ERROR|PANIC): .*|server process .* was terminated .*)$/gm)) {
    const name = what!.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, '#').replace(/ at character #$/, '')
    found.set(name, (found.get(name) ?? 0) + 1)
  }
  return found
}

/** Remove what runs that were killed have left: their server has stopped by itself, their folder is still there. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^rowlock-faults-(\d+)-/.exec(name)?.[1]
    if (pid === undefined) continue
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
    // Another user's, or its server is still on its way out; left to the next run.
  }
}
