// Starts a server on a home's cluster and says why when it does not start.

import { randomBytes } from 'node:crypto'
import { renameSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { asAccount } from './account.ts'
import { type Answer, untilAnswering } from './answer.ts'
import type { Binaries } from './binaries.ts'
import { lastLines, textSince, unavailable } from './failure.ts'
import { type Hold, type KeeperConfig, startKeeper } from './hold.ts'
import type { Home } from './home.ts'
import type { CheckedOptions } from './options.ts'
import { disownPidFile } from './postmaster.ts'
import { postgresArguments, writeSettings } from './settings.ts'

const LOG_BYTES = 10_000_000

/** A server that answers, and our hold on it. */
export interface Held {
  readonly answer: Answer
  readonly hold: Hold
}

/** Start the server. The cluster must be there, no postmaster must run on it. Errors: EMBEDDED_UNAVAILABLE. */
export async function launch(home: Home, binaries: Binaries, options: CheckedOptions): Promise<Held> {
  const deadline = performance.now() + options.startTimeoutMs
  writeSettings(home, options)
  turnLog(home.log)
  for (;;) {
    const port = options.port ?? (await freePort())
    const before = sizeOf(home.log)
    disownPidFile(home.data)
    const hold = await startKeeper(launching(home, binaries, port))
    const held = hold && (await answered(home, hold, deadline - performance.now()))
    if (held) return held
    const said = textSince(home.log, before)
    const taken = /Address already in use|could not create any TCP\/IP sockets/.test(said)
    if (taken && options.port !== undefined) {
      throw unavailable(`port ${port} is taken. Leave \`port\` out for a free one, or name another.`)
    }
    // Backends of a killed postmaster need a moment to notice; a free port may be snatched. Both pass.
    const passing = taken || /shared memory block .* is still in use/.test(said)
    if (!passing || performance.now() > deadline) {
      throw unavailable(`the server did not start:\n${lastLines(said)}\nIts log is ${home.log}.`)
    }
    await sleep(50)
  }
}

/** Wait for the server that we hold to answer; undefined when it ended instead. Errors: EMBEDDED_UNAVAILABLE. */
export async function answered(home: Home, hold: Hold, boundMs: number): Promise<Held | undefined> {
  try {
    const answer = await untilAnswering(home, boundMs, hold.lost)
    return answer && { answer, hold }
  } catch (error) {
    await hold.leave()
    throw error
  }
}

/** Put a new keeper over a server whose keeper was killed; undefined when the server has ended meanwhile. */
export function adopt(home: Home, pid: number): Promise<Hold | undefined> {
  return startKeeper({ ...basics(home), adopt: pid })
}

function launching(home: Home, binaries: Binaries, port: number): KeeperConfig {
  return {
    ...basics(home),
    command: join(binaries.bin, 'postgres'),
    control: join(binaries.bin, 'pg_ctl'),
    args: postgresArguments(home, port),
    spawn: { ...asAccount(home.account), env: binaries.env, cwd: '/' },
  }
}

function basics(home: Home): KeeperConfig {
  return {
    token: randomBytes(24).toString('base64url'),
    file: home.keeper,
    log: home.log,
    pidFile: join(home.data, 'postmaster.pid'),
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function turnLog(log: string): void {
  if (sizeOf(log) > LOG_BYTES) renameSync(log, `${log}.1`)
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
