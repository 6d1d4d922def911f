// A worker as its own Node process: talked to over IPC, killed or stopped by its pid, and never left behind.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { PATIENCE_MS, until } from './until.ts'

export interface Child {
  readonly pid: number
  /** What it said, in order. */
  readonly said: readonly any[]
  readonly stderr: string
  /** How it ended, once it has. */
  readonly end: { readonly code: number | null; readonly signal: string | null } | undefined
  send(message: unknown): void
  signal(name: NodeJS.Signals): void
  /** Wait until it has said something that matches. */
  until(what: string, matches: (message: any) => boolean): Promise<any>
  ended(withinMs?: number): Promise<{ readonly code: number | null; readonly signal: string | null }>
}

const alive = new Set<ChildProcess>()

/** Start a TypeScript program beside the tests; it must end by itself when its IPC channel closes. */
export function startChild(path: string, input: unknown): Child {
  const child = fork(fileURLToPath(new URL(`../${path}`, import.meta.url)), [], {
    execArgv: ['--import', 'tsx', '--unhandled-rejections=strict'],
    env: { ...process.env, CHILD_INPUT: JSON.stringify(input) },
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  alive.add(child)
  const said: any[] = []
  let stderr = ''
  let end: Child['end']
  child.stderr!.on('data', (data) => (stderr += data))
  child.on('message', (message) => said.push(message))
  child.on('exit', (code, signal) => {
    end = { code, signal }
    alive.delete(child)
  })
  const signal = (name: NodeJS.Signals) => {
    if (end === undefined) process.kill(child.pid!, name)
  }
  return {
    pid: child.pid!,
    said,
    get stderr() {
      return stderr
    },
    get end() {
      return end
    },
    send: (message) => void child.send(message as object),
    signal,
    until: (what, matches) =>
      until(`${what} (it said ${stderr.slice(0, 500)})`, () => {
        const found = said.find(matches)
        if (found === undefined && end !== undefined) throw new Error(`it ended: ${stderr.slice(0, 2000)}`)
        return found
      }),
    ended: (withinMs = PATIENCE_MS) => until('the child has ended', () => end, { withinMs }),
  }
}

/** After each test: nothing that it started goes on. */
export async function killChildren(): Promise<void> {
  const children = [...alive]
  for (const child of children) child.kill('SIGKILL')
  await until('all children are gone', () => children.every((child) => !alive.has(child)))
}

process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})
