// Build Rowlock into bench/dist when its sources are newer: what is measured is what users get.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TO = join(ROOT, 'bench/dist')

/** Errors: what tsc says, when it emits nothing. */
export function build(say: (line: string) => void): void {
  const entry = join(TO, 'index.js')
  const newest = Math.max(
    ...readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => statSync(join(ROOT, 'src', path)).mtimeMs),
  )
  if (existsSync(entry) && statSync(entry).mtimeMs > newest) return
  say('building Rowlock into bench/dist')
  rmSync(TO, { recursive: true, force: true })
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const flags = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', TO, '--declaration', 'false']
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags], { encoding: 'utf8' })
  if (status !== 0) say(stdout)
  if (!existsSync(entry)) throw new Error('Rowlock could not be built')
}
