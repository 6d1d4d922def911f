// A process's hold on a server: starts the keeper, joins it, leaves it.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { parse } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { codeOf, unavailable } from './failure.ts'

/** A connection to the keeper; while it is open the server stays. */
export interface Hold {
  /** Let go; returns `gone` when that stopped the server, `stays` when others hold it, `lost` when the keeper died. */
  leave(): Promise<'gone' | 'stays' | 'lost'>
  /** Whether the keeper has closed the connection: with its server, or because it was killed. */
  lost(): boolean
  /** Called once when the connection ends without our leaving. */
  onLost(call: () => void): void
}

/** What the keeper is told; `adopt` is the postmaster to watch instead of starting one. */
export interface KeeperConfig {
  readonly token: string
  readonly file: string
  readonly log: string
  readonly pidFile: string
  readonly control?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly spawn?: object
  readonly adopt?: number
}

const JOIN_BOUND_MS = 5_000

/**
 * Start a keeper and join it. Errors: EMBEDDED_UNAVAILABLE when the keeper itself does not start.
 *
 * @returns undefined when its server has ended already.
 */
export async function startKeeper(config: KeeperConfig): Promise<Hold | undefined> {
  const file = fileURLToPath(import.meta.url).replace(/hold(\.[jt]s)$/, 'keeper$1')
  // Node.js 20 cannot run TypeScript; the keeper is written so that its text is JavaScript as well.
  const run = file.endsWith('.ts') ? ['--input-type=module', '-e', readFileSync(file, 'utf8')] : [file]
  const child = spawn(process.execPath, run, {
    detached: true,
    cwd: parse(process.execPath).root,
    env: keptEnvironment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    windowsHide: true,
  })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  child.stdin.on('error', () => {})
  const port = await new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(unavailable(`the keeper did not start: ${error.message}`, error)))
    child.once('close', (code) => reject(unavailable(`the keeper ended (${code}): ${said}`)))
    createInterface({ input: child.stdout }).once('line', (line) => resolve(Number(line)))
    child.stdin.write(`${JSON.stringify(config)}\n`)
  })
  const hold = await join(port, config.token)
  child.stdin.end()
  child.stdout.destroy()
  child.stderr.destroy()
  child.unref()
  return hold === 'stopping' ? undefined : hold
}

/**
 * Join the keeper that a home names. Errors: EMBEDDED_UNAVAILABLE when it is another user's.
 *
 * @returns `stopping` when its server is on its way out, undefined when there is no keeper.
 */
export async function joinKeeper(file: string): Promise<Hold | 'stopping' | undefined> {
  try {
    const { port, token } = JSON.parse(readFileSync(file, 'utf8')) as { port: number; token: string }
    return await join(port, token)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw unavailable(`${file} cannot be read: another user started this server?`, error)
  }
}

function join(port: number, token: string): Promise<Hold | 'stopping' | undefined> {
  const socket = createConnection({ host: '127.0.0.1', port })
  const words: string[] = []
  let left = false
  let calls: (() => void)[] = []
  return new Promise((resolve) => {
    const patience = setTimeout(() => socket.destroy(), JOIN_BOUND_MS)
    const closed = new Promise<void>((done) => socket.once('close', () => done()))
    const leave = async () => {
      socket.ref()
      left = true
      if (!socket.destroyed) socket.write('leave\n')
      await closed
      return words.includes('gone') ? 'gone' : words.includes('stays') ? 'stays' : 'lost'
    }
    const hold: Hold = {
      leave,
      lost: () => socket.destroyed,
      onLost: (call) => {
        if (socket.destroyed) call()
        else calls.push(call)
      },
    }
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(patience)
      resolve(undefined)
      if (!left) for (const call of calls) call()
      calls = []
    })
    const reader = createInterface({ input: socket })
    reader.on('error', () => {})
    reader.on('line', (word) => {
      words.push(word)
      clearTimeout(patience)
      if (word === 'joined') {
        // A server that nobody stops must not keep its process from ending.
        socket.unref()
        resolve(hold)
      }
      if (word === 'stopping') resolve('stopping')
    })
    socket.once('connect', () => socket.write(`${token}\n`))
  })
}

function keptEnvironment(): NodeJS.ProcessEnv {
  const names = ['PATH', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot', 'ELECTRON_RUN_AS_NODE']
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}
