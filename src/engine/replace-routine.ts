// Puts a function or view in place of an older form of it.

import { RowlockError } from '../ground/errors.ts'
import type { Routine } from './migration.ts'
import { RELEASE } from './release.ts'
import { quoteIdentifier, quoteLiteral, renderSql } from './schema.ts'
import type { PooledClient } from './seam.ts'

/** Another return type, or other columns of a view, cannot be put in place of the old one. */
const NOT_IN_PLACE = new Set(['42P13', '42P16'])

/** A function or view of this name that is there. */
interface Found {
  readonly oid: string
  /** Changes when it is replaced in place. */
  readonly version: string
  readonly kind: 'function' | 'table'
  readonly drop: string
  /** What others than its owner may do with it, as statements for whatever stands in its place. */
  readonly grants: readonly string[]
}

/**
 * One signature per function: a version with other arguments goes, in the same transaction. Who was allowed to call the
 * old one may call the new one; a new function is nobody's but the owner's.
 *
 * Errors: MIGRATION_FAILED when an object of that name is there which Rowlock did not make (`isKnown` is false).
 */
export async function replaceRoutine(
  client: PooledClient,
  schema: string,
  routine: Routine,
  isKnown: boolean,
): Promise<void> {
  const s = `${quoteIdentifier(schema)}.`
  const before = await find(client, schema, routine.name)
  if (before.length > 0 && !isKnown) {
    throw new RowlockError(
      'MIGRATION_FAILED',
      `The migration failed: ${s}${routine.name} is there already and is not of Rowlock. ` +
        'Give Rowlock a schema of its own.',
    )
  }
  const wanted = renderSql(routine.sql, schema)
  let isDropped = false
  await client.query('savepoint routine')
  try {
    await client.query(wanted)
  } catch (error) {
    if (before.length === 0 || !NOT_IN_PLACE.has(String((error as { code?: unknown }).code))) throw error
    await client.query('rollback to savepoint routine')
    for (const { drop } of before) await client.query(drop)
    await client.query(wanted)
    isDropped = true
  }
  const after = await find(client, schema, routine.name)
  const old = new Map(before.map(({ oid, version }) => [oid, version]))
  const isNew = !after.some(({ oid }) => old.has(oid)) || after.length > before.length
  if (!isDropped) {
    for (const { oid, version, kind, drop } of after) {
      if (kind === 'function' && old.get(oid) === version) await client.query(drop)
    }
  }
  if (isNew) {
    await client.query(revokeFromPublic(schema, routine))
    for (const grant of new Set(before.flatMap(({ grants }) => grants))) await client.query(grant)
  }
  await client.query('release savepoint routine')
  await client.query(
    `insert into ${s}routine (name, hash, release) values ($1, $2, $3)
         on conflict (name) do update
        set hash = excluded.hash, release = excluded.release, replaced_at = clock_timestamp()`,
    [routine.name, routine.hash, RELEASE],
  )
}

/** PostgreSQL lets everybody call a new function; Rowlock lets those who were allowed to. */
export function revokeFromPublic(schema: string, { name, sql }: Routine): string {
  if (/^create or replace view /m.test(sql)) return ''
  return `revoke all on function ${quoteIdentifier(schema)}.${quoteIdentifier(name)} from public;`
}

async function find(client: PooledClient, schema: string, name: string): Promise<Found[]> {
  const on = quoteLiteral(`${quoteIdentifier(schema)}.${quoteIdentifier(name)}`)
  const { rows } = await client.query(
    `select o.oid::text as oid, o.version, o.kind, o.drop, array(
              select format('grant %s on %s %s to %s%s', a.privilege_type, o.kind, ${on},
                       case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
                       case when a.is_grantable then ' with grant option' else '' end)
                from aclexplode(o.acl) as a
               where a.grantee <> o.owner) as grants
       from (
         select p.oid, p.xmin::text as version, p.proacl as acl, p.proowner as owner, 'function' as kind,
                format('drop function %I.%I(%s)', n.nspname, p.proname,
                       pg_get_function_identity_arguments(p.oid)) as drop
           from pg_proc p join pg_namespace n on n.oid = p.pronamespace
          where n.nspname = $1 and p.proname = $2
          union all
         select c.oid, c.xmin::text, c.relacl, c.relowner, 'table', format('drop view %I.%I', n.nspname, c.relname)
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relname = $2 and c.relkind = 'v') as o`,
    [schema, name],
  )
  return rows as Found[]
}
