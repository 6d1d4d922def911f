// What a page's program stands on while it runs: says which block it is at, and runs the page's SQL as psql would.

import pg from 'pg'
import { statementsOf } from './statements.ts'

/** Marks in the output where a block begins. */
export const MARK = '\u0001'

const sessions = new Map<string, pg.Client>()

export function step(line: number): void {
  process.stdout.write(`${MARK}${line}\n`)
}

/** Run a block's statements one by one, and print what they answer. One that fails ends the block. */
export async function sql(text: string, options: { session?: string; fails?: string }): Promise<void> {
  const client = await session(options.session ?? 'main')
  let refused: { code?: string; message?: string } | undefined
  for (const statement of statementsOf(text)) {
    try {
      const result = (await client.query(statement)) as pg.QueryResult
      if (result.fields.length > 0) print(result)
    } catch (error) {
      refused = error as { code?: string; message?: string }
      if (options.fails === undefined) throw error
      console.log(`ERROR:  ${refused.message}`)
      break
    }
  }
  if (options.fails === undefined) return
  if (refused === undefined) throw new Error('a block that must fail was carried out')
  if (options.fails !== '' && refused.code !== options.fails) {
    throw new Error(`must fail with ${options.fails}, failed with ${refused.code}: ${refused.message}`)
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

function print({ fields, rows }: pg.QueryResult): void {
  const table = [
    fields.map(({ name }) => name),
    ...rows.map((row) => fields.map(({ name }) => row[name] ?? '')),
  ]
  for (const cells of table) console.log(` ${cells.join(' | ')}`)
  console.log(`(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`)
}
