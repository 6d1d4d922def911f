// Build Rowlock, and what of the bench runs in children, below bench/dist when the sources are others than when they
// were last built: what is measured is what users get, and children start without a compiler. Each state of the sources
// has a folder of its own, so that a run is not disturbed by the next.

import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { BUILD_VARIABLE } from './built.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILDS = join(ROOT, 'bench/dist')
const KEPT_MS = 86_400_000

/** File by file, as tsc emits them, without checking types: that is for `./check`, and takes a while. */
export function build(say: (line: string) => void): void {
  const to = join(BUILDS, digest())
  process.env[BUILD_VARIABLE] = to
  if (existsSync(join(to, 'src/index.js'))) return
  say('building Rowlock for the bench')
  mkdirSync(BUILDS, { recursive: true })
  for (const old of readdirSync(BUILDS)) {
    if (Date.now() - statSync(join(BUILDS, old)).mtimeMs > KEPT_MS)
      rmSync(join(BUILDS, old), { recursive: true })
  }
  const making = `${to}.${process.pid}`
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => readFileSync(path, 'utf8'))
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT)
  for (const file of sources()) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    const { outputText } = ts.transpileModule(text, {
      fileName: file,
      compilerOptions: { ...options, noEmit: false, module: ts.ModuleKind.ESNext },
    })
    const path = join(making, file.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, outputText)
  }
  if (existsSync(to)) rmSync(making, { recursive: true })
  else renameSync(making, to)
}

function sources(): string[] {
  return ['src', 'bench/kit', 'bench/peers', 'bench/ours'].flatMap((folder) => {
    const all = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    return all.filter((file) => file.endsWith('.ts')).map((file) => join(folder, file))
  })
}

function digest(): string {
  const hash = createHash('sha256')
  for (const file of sources()) hash.update(file).update(readFileSync(join(ROOT, file)))
  return hash.digest('hex').slice(0, 16)
}
