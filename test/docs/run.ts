// Runs a page's program in a process of its own, and tells what each block printed.

import { spawn } from 'node:child_process'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { ROOT } from './markdown.ts'
import { FOLDER, nameOf, type Program } from './program.ts'
import { MARK } from './step.ts'

/** A program that has done its work has nothing left that could keep its process alive. */
const WITHIN_MS = 150_000

export function write(program: Program): string {
  const file = `${ROOT}${FOLDER}/${nameOf(program.page)}.ts`
  mkdirSync(`${ROOT}${FOLDER}`, { recursive: true })
  // Another run may be reading it: it is whole at every moment.
  writeFileSync(`${file}.${process.pid}`, program.text)
  renameSync(`${file}.${process.pid}`, file)
  return file
}

/** What each block printed, by the line it stands on. */
export async function run(program: Program, url: string): Promise<Map<number, string>> {
  const child = spawn(process.execPath, ['--import', 'tsx', write(program)], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: url, TSX_TSCONFIG_PATH: `${ROOT}tsconfig.json`, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (data) => {
    stdout += data
  })
  child.stderr.on('data', (data) => {
    stderr += data
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), WITHIN_MS)
  const code = await new Promise<number | string>((resolve) =>
    child.on('close', (exit, signal) => resolve(exit ?? signal ?? 'nothing')),
  )
  clearTimeout(timer)
  const outputs = outputsOf(stdout)
  if (code !== 0) {
    const last = [...outputs.keys()].at(-1)
    const how = code === 'SIGKILL' ? `did not end by itself within ${WITHIN_MS} ms` : `ended with ${code}`
    throw new Error(
      `the program ${how}, in the block at ${program.page.path}:${last}\n${stderr}\n${stdout.slice(-2000)}`,
    )
  }
  return outputs
}

function outputsOf(stdout: string): Map<number, string> {
  const outputs = new Map<number, string>()
  for (const part of stdout.split(MARK).slice(1)) {
    const newline = part.indexOf('\n')
    outputs.set(Number(part.slice(0, newline)), part.slice(newline + 1))
  }
  return outputs
}
