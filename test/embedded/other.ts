// Another node process in a test: runs `holder.ts`, as another user when asked.

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { EmbeddedOptions, EmbeddedServer } from 'rowlock/embedded'
import { onTestFinished } from 'vitest'
import { programs } from '../support/majors.ts'

/** What the other process said, and the process. */
export interface Other extends Omit<EmbeddedServer, 'stop'> {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
  readonly error?: string
  readonly message?: string
}

/** Run another process that starts or attaches. `keep: false`: it ends by itself, without letting go. */
export async function other(
  options: EmbeddedOptions & { readonly keep?: boolean },
  as: { uid?: number; gid?: number; cwd?: string } = {},
): Promise<Other> {
  const holder = fileURLToPath(new URL('holder.ts', import.meta.url))
  const tsx = import.meta.resolve('tsx')
  const asked = { keep: true, fsync: false, ...programs(), ...options }
  const child = spawn(process.execPath, ['--import', tsx, holder, JSON.stringify(asked)], {
    cwd: '/',
    ...as,
    env: { PATH: process.env.PATH, TSX_DISABLE_CACHE: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! })
      .once('line', resolve)
      .once('close', () => reject(new Error('silent')))
  })
  return { ...(JSON.parse(line) as Omit<EmbeddedServer, 'stop'>), child, ended }
}
