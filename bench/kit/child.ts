// What is measured runs in a child process of its own, so that its CPU time is its own. A child loads one module and
// runs the functions it exports when asked; what the module keeps between them is its state.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { BUILD_VARIABLE } from './built.ts'

/** What a child answers to one question. */
export interface Answered<T> {
  readonly value: T
  /** User and system time of the child's process meanwhile. */
  readonly nodeCpuUs: number
  /** The same since the process began: what lies between two answers is their difference. */
  readonly totalCpuUs: number
  readonly ms: number
}

/** A child process with one module. */
export interface Child {
  /** Run an exported function with one argument (plain JSON), measured by the child itself. */
  ask<T = unknown>(name: string, argument?: unknown): Promise<Answered<T>>
  /** What the module sends by `tell` (`tell.ts`) between answers: progress, ready-made samples. */
  onTold(listener: (told: unknown) => void): void
  /** Let it end by itself; killed when it has not within 10 s. */
  end(): Promise<void>
}

/** A module could not be loaded since a package is not installed. */
export class Missing extends Error {}

const BENCH = new URL('../', import.meta.url).href
const END_MS = 10_000
/** Whoever lives when this process ends is ended with it. */
const living = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/** Start a child with the module at a URL (`new URL('../peers/graphile.ts', import.meta.url)`), as it was built. */
export async function startChild(module: URL): Promise<Child> {
  const host = new URL('./child-host.ts', import.meta.url)
  const child = fork(fileURLToPath(built(host)), [built(module).href], {
    execArgv: process.env.BENCH_CHILD_FLAGS?.split(' ') ?? [],
    // What peers print is for people, and never between ours and the last line of --json.
    stdio: ['ignore', 2, 2, 'ipc'],
    serialization: 'advanced',
  })
  const kill = () => child.kill('SIGKILL')
  living.add(child)
  const waiting = new Map<number, { resolve: (a: Answered<never>) => void; reject: (e: Error) => void }>()
  const listeners: ((told: unknown) => void)[] = []
  let asked = 0
  const loaded = new Promise<void>((resolve, reject) => {
    child.on('message', (message: Message) => {
      if (message.type === 'loaded') resolve()
      else if (message.type === 'missing') reject(new Missing(message.why))
      else if (message.type === 'told') for (const listener of listeners) listener(message.told)
      else {
        const asker = waiting.get(message.id)
        waiting.delete(message.id)
        if (message.type === 'failed') asker?.reject(new Error(message.why))
        else asker?.resolve(message.answered as Answered<never>)
      }
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      living.delete(child)
      const error = new Error(`the child with ${module.pathname.split('/').at(-1)} ended: ${signal ?? code}`)
      reject(error)
      for (const { reject: refuse } of waiting.values()) refuse(error)
      waiting.clear()
    })
  })
  await loaded
  return {
    ask(name, argument) {
      const id = ++asked
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve: resolve as never, reject })
        child.send({ id, name, argument })
      })
    },
    onTold(listener) {
      listeners.push(listener)
    },
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      const timer = setTimeout(kill, END_MS)
      child.disconnect()
      await ended
      clearTimeout(timer)
    },
  }
}

/** Where a module of the bench was built to. */
function built(module: URL): URL {
  const folder = process.env[BUILD_VARIABLE]
  if (folder === undefined || !module.href.startsWith(BENCH)) return module
  const path = module.href.slice(BENCH.length).replace(/\.ts(?=$|\?)/, '.js')
  return new URL(path, `${pathToFileURL(folder).href}/bench/`)
}

type Message =
  | { readonly type: 'loaded' }
  | { readonly type: 'missing'; readonly why: string }
  | { readonly type: 'told'; readonly told: unknown }
  | { readonly type: 'answered'; readonly id: number; readonly answered: Answered<unknown> }
  | { readonly type: 'failed'; readonly id: number; readonly why: string }
