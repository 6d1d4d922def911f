// `rowlock enqueue --file`: reads, checks, sends, and says what has happened, to the line.

import { hash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { extname } from 'node:path'
import type { Database } from '../engine/database.ts'
import {
  type Imported,
  importTogether,
  importWithKey,
  type Progress as Reached,
  type ReadLines,
} from '../engine/import.ts'
import { isRowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'
import { suggest } from '../ground/nearest.ts'
import { databaseOf } from '../rowlock.ts'
import { count, jobs } from './amounts.ts'
import { type Exit, UsageError } from './exit.ts'
import { type Fields, requestOf, withDefaults } from './job-fields.ts'
import { type Format, type JobFormat, type JobLine, readJobs } from './job-lines.ts'
import { readLines } from './lines.ts'
import { Progress } from './progress.ts'
import type { Shell } from './shell.ts'

export interface FileOptions {
  readonly path: string
  readonly format: string | undefined
  readonly delimiter: string
  readonly key: string | undefined
  readonly defaults: Fields
}

/** Interrupted while lines were read. */
class Stopped extends Error {}

/** Lines that are no jobs; whoever reads further may find more. */
class WrongLine extends Error {}

/** What one call works with. */
interface Work {
  readonly shell: Shell
  readonly file: FileOptions
  readonly format: JobFormat
  readonly digest: string
  readonly signal: AbortSignal
  /** Bytes, of a file that can be read twice. */
  readonly size: number | undefined
  /** What people call it. */
  readonly name: string
}

export async function enqueueFile(shell: Shell, file: FileOptions): Promise<Exit> {
  const size = sizeOf(file.path)
  const format: JobFormat = { format: formatOf(file), delimiter: file.delimiter, defaults: file.defaults }
  if (file.delimiter.length !== 1) throw new UsageError('--delimiter must be one sign')
  // What is wrong in the options is no fault of the first line.
  requestOf(withDefaults({ kind: 'any', input: null }, file.defaults))
  const digest = hash('sha256', JSON.stringify(format))
  const name = file.path === '-' ? 'stdin' : file.path
  const database = databaseOf(await shell.client())
  return shell.interruptible((signal) => work({ shell, file, format, digest, signal, size, name }, database))
}

function formatOf({ format, path }: FileOptions): Format {
  if (format === 'ndjson' || format === 'csv') return format
  if (format !== undefined)
    throw new UsageError(`--format must be ndjson or csv; ${suggest(format, ['ndjson', 'csv'])}`)
  const ending = extname(path).toLowerCase()
  if (path === '-' || ['.ndjson', '.jsonl', '.json'].includes(ending)) return 'ndjson'
  if (ending === '.csv') return 'csv'
  throw new UsageError(`what is in ${path}? Give --format ndjson or --format csv.`)
}

/** The size of a regular file. Errors: UsageError when nobody can read it. */
function sizeOf(path: string): number | undefined {
  if (path === '-') return undefined
  try {
    const found = statSync(path)
    if (found.isDirectory()) throw new UsageError(`${path} is a folder`)
    return found.isFile() ? found.size : undefined
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(
      code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read: ${message}`,
    )
  }
}

async function work(work: Work, database: Database): Promise<Exit> {
  const { shell, size } = work
  let lines: number | undefined
  if (size !== undefined) {
    const checked = await check(work, size)
    if (checked === undefined) return stopped(work, undefined)
    if (checked.faults.length > 0) return refused(work, checked.faults, undefined)
    lines = checked.lines
  }
  if (work.file.path === '-' && shell.io.stdin.isTTY === true)
    shell.say('jobs from the terminal; Ctrl-D ends them')
  return send(work, database, lines)
}

/** Read it all before anything is sent. Undefined: interrupted. */
async function check(
  work: Work,
  size: number,
): Promise<{ readonly lines: number; readonly faults: readonly JobLine[] } | undefined> {
  const bar = new Progress(work.shell, { total: size, what: 'bytes checked' })
  const faults: JobLine[] = []
  let lines = 0
  try {
    for await (const line of open(work)) {
      lines = line.line
      // The bar remembers what it was told: not each of millions of lines.
      if (lines % 1_000 === 0) bar.update(line.bytes)
      if (line.fault !== undefined) faults.push(line)
      if (faults.length === LIMITS.importWrongLines.max) break
    }
    return { lines, faults }
  } catch (error) {
    if (error instanceof Stopped) return undefined
    throw error
  } finally {
    bar.end()
  }
}

async function send(work: Work, database: Database, total: number | undefined): Promise<Exit> {
  const { shell, file, signal, digest } = work
  const source = open(work)
  const wrong: JobLine[] = []
  let bar: Progress | undefined
  let reached: Reached | undefined
  const onProgress = (now: Reached) => {
    reached = now
    bar ??= new Progress(shell, { what: 'lines', ...(total !== undefined && { total }) }, now.lines)
    bar.update(now.lines)
  }
  const { key } = file
  try {
    const lines = good(source, wrong)
    const options = { onProgress, signal }
    const found: Reached & Partial<Imported> =
      key === undefined
        ? await importTogether(database, lines, options)
        : await importWithKey(database, { key, digest, actor: shell.io.user }, lines, options)
    bar?.end()
    await told(work, found)
    return 'done'
  } catch (error) {
    bar?.end()
    if (signal.aborted) return stopped(work, reached)
    if (error instanceof WrongLine) {
      for (let more = await source.next(); !more.done; more = await source.next()) {
        if (wrong.length === LIMITS.importWrongLines.max) break
        if (more.value.fault !== undefined) wrong.push(more.value)
      }
      return refused(work, wrong, reached)
    }
    if (key !== undefined && reached !== undefined && !isRowlockError(error, 'IMPORT_CHANGED'))
      shell.say(committed(work, reached))
    throw error
  } finally {
    await source.return()
  }
}

/** The jobs of a file, from its beginning. */
async function* open({ shell, file, format, digest, signal }: Work): AsyncGenerator<JobLine, void> {
  const stream = file.path === '-' ? shell.io.stdin : createReadStream(file.path, { highWaterMark: 262_144 })
  try {
    yield* readJobs(readLines(bytesOf(stream, signal), digest), format)
  } finally {
    // A pipe that nobody reads to its end would keep the process.
    if ('destroy' in stream && typeof stream.destroy === 'function') stream.destroy()
  }
}

/** A pipe may be silent for long: an interruption does not wait for it. */
async function* bytesOf(
  stream: NodeJS.ReadableStream,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const pieces = stream[Symbol.asyncIterator]()
  const aborted = new Promise<'aborted'>((resolve) => {
    if (signal.aborted) resolve('aborted')
    signal.addEventListener('abort', () => resolve('aborted'), { once: true })
  })
  for (;;) {
    const next = pieces.next()
    next.catch(() => {})
    const piece = await Promise.race([next, aborted])
    if (piece === 'aborted' || signal.aborted) throw new Stopped()
    if (piece.done) return
    yield typeof piece.value === 'string' ? Buffer.from(piece.value) : piece.value
  }
}

/** Lines up to the first wrong one. Leaves the source open: what is behind it can be read still. */
async function* good(
  source: AsyncGenerator<JobLine, void>,
  wrong: JobLine[],
): AsyncGenerator<ReadLines, void> {
  for (let next = await source.next(); !next.done; next = await source.next()) {
    if (next.value.fault !== undefined) {
      wrong.push(next.value)
      throw new WrongLine()
    }
    yield next.value
  }
}

async function told({ shell, file, name }: Work, found: Reached & Partial<Imported>): Promise<void> {
  const { lines, jobs: made, existing, dropped, from = 0, wasFinished = false } = found
  const { key } = file
  if (shell.isJson) {
    return shell.json({
      lines,
      jobs: made,
      existing,
      dropped,
      ...(key !== undefined && { key, from, wasFinished }),
    })
  }
  if (wasFinished)
    return shell.print(`nothing enqueued: ${key} was finished before, with ${jobs(made)} in all`)
  const there = existing > 0 ? `; ${count(existing)} were there already, by their dedupe key` : ''
  const lost = dropped > 0 ? `; ${count(dropped)} were dropped, since their queue is full` : ''
  const resumed = from > 0 ? ` in all; this time from line ${count(from + 1)}` : ''
  await shell.print(`${jobs(made)} enqueued from ${name}${resumed}${there}${lost}`)
}

function refused(
  { shell, file, name }: Work,
  faults: readonly JobLine[],
  reached: Reached | undefined,
): Exit {
  for (const { begins, fault } of faults) shell.say(`${name}:${begins}: ${fault}`)
  if (faults.at(-1)?.isLast) shell.say('What follows cannot be read.')
  const isFull = faults.length === LIMITS.importWrongLines.max
  const many = isFull
    ? `at least ${faults.length} lines are`
    : faults.length === 1
      ? 'one line is'
      : `${faults.length} lines are`
  const isPartly = file.key !== undefined && reached !== undefined && reached.lines > 0
  const done = isPartly
    ? `${count(reached.lines)} lines before (${jobs(reached.jobs)}) are committed and stay. ` +
      'Mend the rest and run it again with the same key.'
    : 'nothing was enqueued.'
  shell.say(`rowlock: ${many} wrong; ${done}`)
  return isPartly ? 'partly' : 'usage'
}

function stopped(work: Work, reached: Reached | undefined): Exit {
  const { shell, file } = work
  shell.say(
    file.key !== undefined && reached !== undefined
      ? committed(work, reached)
      : 'stopped: nothing was enqueued',
  )
  return 'interrupted'
}

function committed({ shell }: Work, { lines, jobs: made }: Reached): string {
  return `${count(lines)} lines (${jobs(made)}) are committed; go on with: ${shell.again()}`
}
