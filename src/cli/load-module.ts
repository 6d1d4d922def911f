// The user's module, imported as they named it: a path or a package, JavaScript or TypeScript. Says in their words what
// is wrong with it; starts nothing.

import { existsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UsageError } from './exit.ts'

const TYPESCRIPT = /\.[mc]?tsx?$/

/** Import it. Errors: UsageError, with the stack of their code where that threw. */
export async function loadModule(name: string): Promise<Readonly<Record<string, unknown>>> {
  const path = locate(name)
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    if (!TYPESCRIPT.test(path) || !NO_TYPESCRIPT.has(codeOf(error))) throw explained(name, error)
    if (!(await hasTsx())) throw withoutTypeScript(name, error)
    try {
      // Node remembers that the address could not be loaded; this is another one.
      return await import(`${pathToFileURL(path).href}?rowlock`)
    } catch (failure) {
      throw explained(name, failure)
    }
  }
}

/** The file that is meant: one of that name, or what a package of that name exports. */
function locate(name: string): string {
  const path = resolve(name)
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return path
    throw new UsageError(`${name} is a folder: name the file with the handlers`)
  }
  const bare = !/^[./]/.test(name)
  try {
    const found = bare ? createRequire(join(process.cwd(), 'here.js')).resolve(name) : ''
    if (isAbsolute(found)) return found
  } catch {
    // Said below.
  }
  const near = ['.ts', '.js', '.mjs', '.mts', '.cjs'].find((ending) => existsSync(path + ending))
  const hint = near === undefined ? '' : `; did you mean ${name}${near}?`
  throw new UsageError(`there is no file ${name}${bare ? ', and no package of that name' : ''}${hint}`)
}

/** This Node cannot read it: no type stripping, or syntax that is more than types. */
const NO_TYPESCRIPT = new Set<unknown>(['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'])

/** Take the project's tsx, as `--import tsx` would: the loader that the docs propose. */
async function hasTsx(): Promise<boolean> {
  let path: string
  try {
    path = createRequire(join(process.cwd(), 'here.js')).resolve('tsx')
  } catch {
    return false
  }
  await import(pathToFileURL(path).href)
  return true
}

function withoutTypeScript(name: string, error: unknown): UsageError {
  const why =
    codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION'
      ? `this Node.js (${process.version}) does not read TypeScript by itself`
      : `this Node.js strips types only: ${(error as Error).message}`
  return new UsageError(
    `${name}: ${why}. Type:\n  npm i -D tsx\n` +
      '  then the same again (from 22.18 on, Node.js needs no loader for plain types).\n' +
      `  With another loader: node --import LOADER node_modules/.bin/rowlock work ${name}`,
  )
}

function explained(name: string, error: unknown): UsageError {
  const stack = error instanceof Error ? stackOf(error) : String(error)
  return new UsageError(`${name} could not be loaded:\n${stack}`)
}

const OURS = /^\s+at .*(node:internal|\/(cli|worker)\/[\w-]+\.[jt]s|node_modules[\\/](tsx|commander)[\\/])/

/** A stack without what is ours and Node's: their code. */
export function stackOf(error: Error): string {
  const stack = String(error.stack ?? error)
  const lines = stack.split('\n').filter((line) => !OURS.test(line))
  const cause = error.cause instanceof Error ? `\n[cause]: ${stackOf(error.cause)}` : ''
  return lines.join('\n') + cause
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code
