// Files of jobs on their way in: all in one transaction, or step by step under a key, so that what was interrupted goes
// on behind the last line that was committed. Reads no file; the command line does.

import { RowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'
import type { Wire } from '../ground/request.ts'
import type { Database } from './database.ts'
import { CallerFailed, original } from './enqueue.ts'
import type { PooledClient } from './seam.ts'
import { isPassing } from './translate.ts'

/** Lines of a file that were read: a job, or none where they are blank. */
export interface ReadLines {
  /** The last line of them. Unit: from 1. */
  readonly line: number
  /** The digest of all lines up to this one. */
  readonly digest: string
  readonly wire: Wire | undefined
}

/** How far it is. */
export interface Progress {
  readonly lines: number
  /** Jobs that were made. */
  readonly jobs: number
  /** Lines whose dedupe key a live job had already, as far as this process saw them. */
  readonly existing: number
  /** Lines whose jobs were dropped, since their queue was full, as far as this process saw them. */
  readonly dropped: number
}

/** An import as the database knows it. */
interface ImportRow {
  readonly key: string
  readonly lines: number
  readonly jobs: number
  readonly digest: string
  readonly startedAt: Date
  readonly beatAt: Date
  readonly endedAt: Date | null
}

/** How an import ended. */
export interface Imported extends Progress {
  /** The line behind which this process began: 0 for the first. */
  readonly from: number
  /** It had been finished before: nothing was enqueued. */
  readonly wasFinished: boolean
}

/** What an import is told besides its lines. */
export interface ImportOptions {
  readonly onProgress?: (progress: Progress) => void
  /** Stops between two statements; what is committed stays. */
  readonly signal?: AbortSignal | undefined
}

/** What `store` answers. */
interface Reply {
  readonly ids: readonly string[]
  /** Those that were not made, the dropped ones among them. */
  readonly existing: readonly number[]
  readonly dropped?: readonly number[]
}

/** It was stopped by its signal. Of an import with a key, what it says is committed. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped'
  readonly progress: Progress

  constructor(progress: Progress) {
    super('the import was stopped')
    this.progress = progress
  }
}

/**
 * Put all jobs of these lines in, or none: one transaction, however many there are.
 *
 * Errors: DATABASE_UNAVAILABLE when the connection was lost and nothing has happened; OUTCOME_UNKNOWN when nobody can
 * be asked whether it has; ImportStopped, and whatever the lines throw: nothing has happened.
 * Source: sql/functions/store.sql
 */
export async function importTogether(
  database: Database,
  lines: AsyncIterable<ReadLines>,
  { onProgress, signal }: ImportOptions = {},
): Promise<Progress> {
  let progress: Progress = { lines: 0, jobs: 0, existing: 0, dropped: 0 }
  let transaction: string | undefined
  let isSent = false
  const send = async (client: PooledClient, batch: readonly ReadLines[]) => {
    const {
      ids,
      existing,
      dropped = [],
    } = await database.callOn<Reply>(
      client,
      'store',
      '$1::text::jsonb, $2::text::boolean, $3::text::boolean',
      wireArguments(batch),
    )
    progress = {
      lines: batch.at(-1)!.line,
      jobs: progress.jobs + ids.length - existing.length,
      existing: progress.existing + existing.length - dropped.length,
      dropped: progress.dropped + dropped.length,
    }
    onProgress?.(progress)
  }
  try {
    await database.transaction(
      async (client) => {
        // A pipe may be slow; its silence is no idleness of ours.
        await client.query('set local idle_in_transaction_session_timeout = 0', [])
        const { rows } = await client.query('select pg_current_xact_id()::text as id', [])
        transaction = (rows[0] as { id: string }).id
        for await (const batch of batchesOf(readable(lines))) {
          if (signal?.aborted) throw new CallerFailed('stopped', { cause: new ImportStopped(progress) })
          await send(client, batch)
        }
        if (signal?.aborted) throw new CallerFailed('stopped', { cause: new ImportStopped(progress) })
        isSent = true
      },
      { write: 'enqueue' },
    )
    return progress
  } catch (error) {
    const cause = original(error)
    if (!(cause instanceof RowlockError) || cause.code !== 'OUTCOME_UNKNOWN') throw cause
    if (isSent && (await wasCommitted(database, transaction!, cause))) return progress
    throw new RowlockError(
      'DATABASE_UNAVAILABLE',
      `The connection was lost before the end (${messageOf(cause.cause)}): nothing was enqueued.`,
      { cause },
    )
  }
}

/** The answer of a commit was lost: PostgreSQL remembers for a while what became of a transaction. */
async function wasCommitted(database: Database, transaction: string, lost: RowlockError): Promise<boolean> {
  for (const pauseMs of PAUSES_MS) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    try {
      const sql = 'select pg_xact_status($1::text::xid8) as status'
      const [row] = await database.query<{ status: string | null }>(sql, [transaction])
      if (row?.status === 'committed') return true
      if (row?.status === 'aborted') return false
    } catch (error) {
      if (!isPassing(error)) throw lost
    }
  }
  throw lost
}

/**
 * Put the jobs of these lines in, in steps that commit with how far they got. Called again with the same key and the
 * same lines, by whichever process, it goes on behind the last step.
 *
 * Shape: `digest` is that of no lines; each step's digest must follow from the lines alone.
 * Errors: IMPORT_CHANGED when the lines are not those that were imported under this key; ImportStopped;
 * DATABASE_UNAVAILABLE and OUTCOME_UNKNOWN when the database stays away: what was committed stays, call again.
 * Source: sql/functions/begin_import.sql, import_jobs.sql, end_import.sql
 */
export async function importWithKey(
  database: Database,
  { key, digest, actor }: { readonly key: string; readonly digest: string; readonly actor?: string },
  lines: AsyncIterable<ReadLines>,
  { onProgress, signal }: ImportOptions = {},
): Promise<Imported> {
  const begin = () =>
    call(database, 'begin_import', '$1::text, $2::text, $3::text', [key, digest, actor ?? null])
  let row = await begin()
  const from = row.lines
  const wasFinished = row.endedAt !== null
  let existing = 0
  let dropped = 0
  let pending: ReadLines[] = []
  let last: Pick<ReadLines, 'line' | 'digest'> = { line: 0, digest }
  // Where the import stands is a line we have read, with the digest we have, or the file is another one.
  let isKnown = false
  const verify = ({ line, digest: found }: Pick<ReadLines, 'line' | 'digest'>) => {
    if (isKnown || line < row.lines) return
    if (line !== row.lines || found !== row.digest) throw changed(row)
    isKnown = true
  }
  const stand = (now: Answer) => {
    isKnown = now.lines === row.lines && isKnown
    row = now
    for (const each of pending) verify(each)
    pending = pending.filter(({ line }) => line > row.lines)
  }
  const progress = (): Progress => ({ lines: row.lines, jobs: row.jobs, existing, dropped })
  const flush = async () => {
    while (pending.length > 0) {
      if (signal?.aborted) throw new ImportStopped(progress())
      if (row.endedAt !== null) throw longer(row, pending[0]!.line)
      if (!isKnown) throw changed(row)
      const end = pending.at(-1)!
      const [jobs, ...flags] = wireArguments(pending)
      const answer = await patiently(
        () =>
          call(
            database,
            'import_jobs',
            '$1::text, $2::text::bigint, $3::text, $4::text::jsonb, $5::text::bigint, $6::text, ' +
              '$7::text::boolean, $8::text::boolean',
            [key, String(row.lines), row.digest, jobs, String(end.line), end.digest, ...flags],
          ),
        begin,
        signal,
      )
      existing += answer.existing ?? 0
      dropped += answer.dropped ?? 0
      stand(answer)
      onProgress?.(progress())
    }
  }
  verify(last)
  onProgress?.(progress())
  for await (const batch of batchesOf(lines)) {
    for (const each of batch) verify(each)
    last = batch.at(-1)!
    pending = batch.filter(({ line }) => line > row.lines)
    if (signal?.aborted) throw new ImportStopped(progress())
    await flush()
  }
  if (last.line < row.lines) throw shorter(row, last.line)
  while (row.endedAt === null) {
    const end = () =>
      call(database, 'end_import', '$1::text, $2::text::bigint, $3::text', [
        key,
        String(row.lines),
        row.digest,
      ])
    stand(await patiently(end, begin, signal))
    if (last.line < row.lines) throw shorter(row, last.line)
  }
  return { ...progress(), from, wasFinished }
}

/** Each pause before the next try, some ten seconds in all: a restart of the server, not an outage. */
const PAUSES_MS = [100, 250, 500, 1_000, 2_000, 3_000, 3_000]

/** What a passing fault undid, or hid the answer of, is followed by a look at where the import stands. */
async function patiently(
  work: () => Promise<Answer>,
  look: () => Promise<Answer>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  let next = work
  for (const pauseMs of PAUSES_MS) {
    try {
      return await next()
    } catch (error) {
      if (!isPassing(error) || signal?.aborted) throw error
    }
    next = look
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return next()
}

/** A row of `rowlock.import`, and how many jobs of the step were not made. */
interface Row extends Pick<ImportRow, 'key' | 'lines' | 'jobs' | 'digest'> {
  readonly started_at: string
  readonly beat_at: string
  readonly ended_at: string | null
  readonly existing?: number
  readonly dropped?: number
}

/** The same as those read it who import. */
interface Answer extends ImportRow {
  readonly existing?: number
  readonly dropped?: number
}

async function call(database: Database, verb: string, args: string, values: unknown[]): Promise<Answer> {
  const row = await database.call<Row>(verb, args, values, { write: verb })
  const { key, lines, jobs, digest, started_at, beat_at, ended_at, existing, dropped } = row
  return {
    key,
    lines,
    jobs,
    digest,
    startedAt: new Date(started_at),
    beatAt: new Date(beat_at),
    endedAt: ended_at === null ? null : new Date(ended_at),
    ...(existing !== undefined && { existing }),
    ...(dropped !== undefined && { dropped }),
  }
}

const refused = (message: string) => new RowlockError('IMPORT_CHANGED', message, { path: 'key' })

const changed = ({ key, lines }: ImportRow) =>
  refused(
    lines === 0
      ? `The import ${key} was begun with other options.`
      : `The first ${lines.toLocaleString('en')} lines are not those that were imported under the key ${key}: ` +
          'the file or the options are others.',
  )

const longer = ({ key, lines }: ImportRow, line: number) =>
  refused(
    `The import ${key} is finished and had ${lines.toLocaleString('en')} lines; this file goes on in line ${line}. ` +
      'Give what is new a key of its own.',
  )

const shorter = ({ key, lines }: ImportRow, found: number) =>
  refused(
    `Under the key ${key} ${lines.toLocaleString('en')} lines were imported; this file has only ${found}: ` +
      'it is another.',
  )

/** A number with an exponent: jsonb writes it out, so its text may be large though this one is not. */
const EXPONENT = /\de[+-]\d/

/** The jobs as text, whether any has a key, whether any may be large: as `store` takes them. */
function wireArguments(batch: readonly ReadLines[]): [string, string, string] {
  const wires = batch.flatMap(({ wire }) => (wire === undefined ? [] : [wire]))
  const isLarge = wires.some(
    ({ inputBytes, job }) => inputBytes > LIMITS.inlineInputBytes.max || EXPONENT.test(job),
  )
  return [
    `[${wires.map(({ job }) => job).join(',')}]`,
    String(wires.some(({ keyed }) => keyed)),
    String(isLarge),
  ]
}

/** Lines of one statement: at most 1,000 jobs and 4 MB; blank ones count as jobs, so that nobody waits for the end. */
async function* batchesOf(lines: AsyncIterable<ReadLines>): AsyncGenerator<ReadLines[], void> {
  let batch: ReadLines[] = []
  let bytes = 0
  for await (const one of lines) {
    const more = one.wire?.bytes ?? 0
    if (batch.length > 0 && bytes + more > LIMITS.bytesPerCall.max) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(one)
    bytes += more
    if (batch.length < LIMITS.jobsPerCall.max) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

async function* readable(lines: AsyncIterable<ReadLines>): AsyncGenerator<ReadLines, void> {
  try {
    yield* lines
  } catch (error) {
    throw new CallerFailed('the lines could not be read', { cause: error })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
