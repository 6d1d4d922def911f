// Runs a TypeScript file of the project as a process of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from './tree.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Child {
  readonly process: ChildProcess
  /** What it has written so far. */
  readonly said: { readonly stdout: string; readonly stderr: string }
  readonly ended: Promise<Ended>
}

const LOADER = join(ROOT, 'node_modules/tsx/dist/loader.mjs')

/** Start `node file args`. The environment is ours, less DATABASE_URL, and what is given. */
export function startTypeScript(
  file: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  options: { readonly cwd?: string; readonly uid?: number; readonly gid?: number } = {},
): Child {
  const { DATABASE_URL: _, ...ours } = process.env
  const child = spawn(process.execPath, ['--import', LOADER, join(ROOT, file), ...args], {
    env: { ...ours, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  })
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (chunk) => {
      text[name] += chunk
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, ...text }))
  })
  return { process: child, said: text, ended }
}

/** Run it to its end. */
export const runTypeScript = (...args: Parameters<typeof startTypeScript>): Promise<Ended> =>
  startTypeScript(...args).ended
