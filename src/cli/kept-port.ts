// The port that a folder's server had, so that an address that was written down holds from one start to the next. One
// that somebody else has taken meanwhile is left to him.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

const HOST = '127.0.0.1'
const fileOf = (folder: string): string => join(folder, 'port')

/** The port of the last start, if there was one and it is free. */
export async function keptPort(folder: string): Promise<number | undefined> {
  let port: number
  try {
    port = Number(readFileSync(fileOf(folder), 'utf8'))
  } catch {
    return undefined
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, HOST, () => server.close(() => resolve(port)))
  })
}

/** Remember it. That it cannot be written is no reason to have no server. */
export function keepPort(folder: string, port: number): void {
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(fileOf(folder), `${port}\n`)
  } catch {
    // The next start takes another one.
  }
}
