// What a page's program stands on while it runs: says which block it is at, and runs the page's SQL as psql would.

import pg from 'pg'
import { statementsOf } from './statements.ts'

/** Marks in the output where a block begins. */
export const MARK = '\u0001'

const sessions = new Map<string, pg.Client>()

export function step(line: number): void {
  process.stdout.write(`${MARK}${line}\n`)
}

/** How a block is run: its marks. */
interface SqlOptions {
  readonly session?: string
  readonly fails?: string
  readonly waits?: string
}

/** Blocks that wait for a lock; what they print is kept for the next block of their session. */
const waiting = new Map<string, Promise<string[]>>()

/** Run a block's statements one by one, and print what they answer. */
export async function sql(text: string, options: SqlOptions): Promise<void> {
  const name = options.session ?? 'main'
  const client = await session(name)
  for (const line of (await waiting.get(name)) ?? []) console.log(line)
  waiting.delete(name)
  const done = runAll(client, text, options)
  if (options.waits === undefined) {
    for (const line of await done) console.log(line)
    return
  }
  waiting.set(name, done)
  done.catch(() => {}) // it is awaited later
  await untilBlocked(client, done)
}

/** One that fails ends the block. */
async function runAll(client: pg.Client, text: string, options: SqlOptions): Promise<string[]> {
  const lines: string[] = []
  let refused: { code?: string; message?: string } | undefined
  for (const statement of statementsOf(text)) {
    try {
      const result = (await client.query(statement)) as pg.QueryResult
      if (result.fields.length > 0) lines.push(...tableOf(result))
    } catch (error) {
      refused = error as { code?: string; message?: string }
      if (options.fails === undefined) throw error
      lines.push(`ERROR:  ${refused.message}`)
      break
    }
  }
  if (options.fails === undefined) return lines
  if (refused === undefined) throw new Error('a block that must fail was carried out')
  if (options.fails !== '' && refused.code !== options.fails) {
    throw new Error(`must fail with ${options.fails}, failed with ${refused.code}: ${refused.message}`)
  }
  return lines
}

async function untilBlocked(client: pg.Client, done: Promise<unknown>): Promise<void> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  done.then(end, end)
  const watcher = await session('watcher')
  const { processID } = client as unknown as { processID: number }
  for (;;) {
    const { rows } = await watcher.query('select cardinality(pg_blocking_pids($1)) > 0 as blocked', [
      processID,
    ])
    if (rows[0].blocked === 't') return
    if (isDone) throw new Error('a block that must wait did not')
  }
}

export async function end(): Promise<void> {
  for (const client of sessions.values()) await client.end()
}

async function session(name: string): Promise<pg.Client> {
  const known = sessions.get(name)
  if (known !== undefined) return known
  const client = new pg.Client({
    connectionString: process.env.DATABASE_URL,
    // As the server writes it: psql reads no types either.
    types: { getTypeParser: () => (value: unknown) => value } as never,
  })
  await client.connect()
  sessions.set(name, client)
  return client
}

function tableOf({ fields, rows }: pg.QueryResult): string[] {
  const table = [
    fields.map(({ name }) => name),
    ...rows.map((row) => fields.map(({ name }) => row[name] ?? '')),
  ]
  return [
    ...table.map((cells) => ` ${cells.join(' | ')}`),
    `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`,
  ]
}
