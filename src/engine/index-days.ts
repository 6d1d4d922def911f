// Builds an index of a table that is parted in days while others write to it. PostgreSQL has no statement for that: the
// index of the whole comes first, of no day; then one of each day, built concurrently, takes its place in it.

import type { PooledClient } from './seam.ts'

/** A statement of a migration that builds such an index. */
export interface DaysIndex {
  readonly name: string
  readonly table: string
  /** Columns and condition. */
  readonly rest: string
}

const BUILDS = /^create index concurrently if not exists (\w+)\s+on rowlock\.(\w+)\s+([\s\S]*)$/
/** New days come with the index; one that came in the moment it was made is met in the next round. */
const ROUNDS = 5
const LOCK_TIMEOUT = '2s'

/** What a statement builds, if it builds an index concurrently on a table that has days. */
export async function readDaysIndex(
  client: PooledClient,
  schema: string,
  statement: string,
): Promise<DaysIndex | undefined> {
  const [, name, table, rest] = statement.match(BUILDS) ?? []
  if (name === undefined || table === undefined || rest === undefined) return undefined
  const { rows } = await client.query(
    `select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = $2 and c.relkind = 'p'`,
    [schema, table],
  )
  return rows.length === 0 ? undefined : { name, table, rest }
}

/**
 * Build it; can be run again after it was interrupted.
 *
 * Transaction: none; short ones of its own. Locks: the table against writers for a moment, waited for 2 s.
 * Errors: 55P03.
 */
export async function buildDaysIndex(client: PooledClient, schema: string, index: DaysIndex): Promise<void> {
  const { name, table, rest } = index
  const quoted = await quote(client, [schema, name, table])
  const [s, parent, whole] = quoted as [string, string, string]
  await briefly(client, `create index if not exists ${parent} on only ${s}.${whole} ${rest}`)
  for (let round = 0; round < ROUNDS; round++) {
    const days = await missing(client, schema, index)
    if (days.length === 0) return
    for (const day of days) {
      const [on, part] = (await quote(client, [day.name, day.index])) as [string, string]
      try {
        if (day.state === 'invalid') await client.query(`drop index concurrently if exists ${s}.${part}`)
        if (day.state !== 'built')
          await client.query(`create index concurrently ${part} on ${s}.${on} ${rest}`)
        await briefly(client, `alter index ${s}.${parent} attach partition ${s}.${part}`)
      } catch (error) {
        // A day that was due has been dropped meanwhile: the next round does not find it.
        if ((error as { code?: unknown }).code !== '42P01') throw error
      }
    }
  }
}

interface Day {
  readonly name: string
  readonly index: string
  readonly state: 'none' | 'invalid' | 'built'
}

/** Days that have no part in the index, and what there is of one. */
async function missing(client: PooledClient, schema: string, { name, table }: DaysIndex): Promise<Day[]> {
  const { rows } = await client.query(
    `select d.relname as name, left(d.relname || '_' || $2, 63) as index,
            case when i.indexrelid is null then 'none' when i.indisvalid then 'built' else 'invalid' end as state
       from pg_namespace n
       join pg_class t on t.relnamespace = n.oid and t.relname = $3
       join pg_class w on w.relnamespace = n.oid and w.relname = $2
       join pg_inherits p on p.inhparent = t.oid and not p.inhdetachpending
       join pg_class d on d.oid = p.inhrelid
       left join pg_class c on c.relnamespace = n.oid and c.relname = left(d.relname || '_' || $2, 63)
       left join pg_index i on i.indexrelid = c.oid and i.indrelid = d.oid
      where n.nspname = $1
        and not exists (
              select from pg_inherits a join pg_index x on x.indexrelid = a.inhrelid
               where a.inhparent = w.oid and x.indrelid = d.oid)
      order by d.relname`,
    [schema, name, table],
  )
  return rows as unknown as Day[]
}

async function briefly(client: PooledClient, statement: string): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
    await client.query(statement)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function quote(client: PooledClient, names: readonly string[]): Promise<string[]> {
  const { rows } = await client.query(
    `select array_agg(quote_ident(g.name) order by g.n) as names
       from unnest($1::text[]) with ordinality as g (name, n)`,
    [names],
  )
  return (rows[0] as { names: string[] }).names
}
