// Build Rowlock below bench/dist when its sources are others than when it was last built: what is measured is what users
// get. Each state of the sources has a folder of its own, so that a run is not disturbed by the next.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILDS = join(ROOT, 'bench/dist')
const KEPT_MS = 86_400_000

/** Where children find Rowlock; `rowlock.ts` reads it from the environment, which children inherit. */
export const BUILD_VARIABLE = 'ROWLOCK_BENCH_BUILD'

/** Errors: when tsc emits nothing. What it has to say is said. */
export function build(say: (line: string) => void): void {
  const to = join(BUILDS, digest())
  process.env[BUILD_VARIABLE] = to
  if (existsSync(join(to, 'index.js'))) return
  say('building Rowlock for the bench')
  mkdirSync(BUILDS, { recursive: true })
  for (const old of readdirSync(BUILDS)) {
    if (Date.now() - statSync(join(BUILDS, old)).mtimeMs > KEPT_MS)
      rmSync(join(BUILDS, old), { recursive: true })
  }
  const making = `${to}.${process.pid}`
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const flags = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', making, '--declaration', 'false']
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags], { encoding: 'utf8' })
  if (status !== 0) say(stdout)
  if (!existsSync(join(making, 'index.js'))) throw new Error('Rowlock could not be built')
  if (existsSync(to)) rmSync(making, { recursive: true })
  else renameSync(making, to)
}

function digest(): string {
  const hash = createHash('sha256')
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).sort()
  for (const file of files) {
    if (file.endsWith('.ts')) hash.update(file).update(readFileSync(join(ROOT, 'src', file)))
  }
  return hash.digest('hex').slice(0, 16)
}
