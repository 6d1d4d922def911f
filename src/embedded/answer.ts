// Does the server answer, with our password, for our cluster?

import { readFileSync, realpathSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { codeOf, unavailable } from './failure.ts'
import type { Home } from './home.ts'
import { type Postmaster, runningPostmaster } from './postmaster.ts'

/** A server that answered. */
export interface Answer extends Postmaster {
  readonly url: string
  readonly version: string
}

/**
 * Wait until the server on the home's cluster answers.
 *
 * Errors: EMBEDDED_UNAVAILABLE when it does not within the bound, or does not know our password.
 *
 * @returns undefined as soon as `over()` says that nothing more is to be expected.
 */
export async function untilAnswering(
  home: Home,
  boundMs: number,
  over: () => boolean,
): Promise<Answer | undefined> {
  const deadline = performance.now() + boundMs
  let reason: unknown
  while (!over()) {
    const running = runningPostmaster(home.data)
    // Only the port that our postmaster wrote down is tried: nobody else is offered the password.
    if (running && running.port > 0) {
      try {
        return await ask(home, running)
      } catch (error) {
        reason = error
        if (codeOf(error) === '28P01' || codeOf(error) === '28000') break
      }
    }
    if (performance.now() > deadline) break
    await sleep(20)
  }
  if (over()) return undefined
  const why = reason instanceof Error ? `: ${reason.message}` : ''
  throw unavailable(`the server on ${home.data} does not answer${why}. Its log is ${home.log}.`, reason)
}

async function ask(home: Home, running: Postmaster): Promise<Answer> {
  const password = readFileSync(home.password, 'utf8').trim()
  const url = `postgres://postgres:${password}@127.0.0.1:${running.port}/postgres`
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, ssl: false })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query(
      "select current_setting('data_directory') as data, current_setting('server_version') as version",
    )
    const { data, version } = rows[0] as { data: string; version: string }
    if (realpathSync(data) !== home.data) throw unavailable(`port ${running.port} belongs to ${data}.`)
    return { ...running, url, version: version.split(' ')[0] ?? version }
  } finally {
    await client.end().catch(() => {})
  }
}
