// A PostgreSQL that its victims may kill: it does not come back by itself, but when it is asked to.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type EmbeddedServer, startEmbedded } from '../../src/embedded/index.ts'

/** One, on disk, with fsync: what it acknowledged must be there when it is back. */
export interface MortalServer {
  readonly url: string
  /** The postmaster's, of now. */
  readonly pid: number
  /** After its death: start it again, on the same port. */
  revive(): Promise<void>
  stop(): Promise<void>
}

/** Start one below the temporary folder; faults/cluster.ts sweeps up what runs that were killed have left. */
export async function startMortal(): Promise<MortalServer> {
  const dataDir = mkdtempSync(join(tmpdir(), `rowlock-faults-${process.pid}-`))
  const options = {
    dataDir,
    from: fileURLToPath(new URL('../../dev/postgres', import.meta.url)),
    settings: { max_connections: 100, shared_buffers: '64MB', checkpoint_timeout: '1h' },
  }
  const remove = () => rmSync(dataDir, { recursive: true, force: true })
  let server: EmbeddedServer
  try {
    server = await startEmbedded(options)
  } catch (error) {
    remove()
    throw error
  }
  const { port, url } = server
  const all = [server]
  return {
    url,
    get pid() {
      return server.pid
    },
    async revive() {
      server = await startEmbedded({ ...options, port })
      all.push(server)
    },
    async stop() {
      await Promise.all(all.map((each) => each.stop().catch(() => {})))
      remove()
    },
  }
}
