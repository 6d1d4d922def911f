// Puts a function or view in place of an older form of it.

import type { Routine } from './migration.ts'
import { RELEASE } from './release.ts'
import { quoteIdentifier, renderSql } from './schema.ts'
import type { PooledClient } from './seam.ts'

/** One signature per function: a version with other arguments goes first, in the same transaction. */
export async function replaceRoutine(client: PooledClient, schema: string, routine: Routine): Promise<void> {
  const s = `${quoteIdentifier(schema)}.`
  const others = `
    select format('drop function %I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as drop
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = $1 and p.proname = $2`
  const { rows: before } = await client.query(others, [schema, routine.name])
  const wanted = renderSql(routine.sql, schema)
  if (before.length === 0) {
    await client.query(wanted)
  } else {
    await client.query('savepoint routine')
    try {
      await client.query(wanted)
      const { rows: after } = await client.query(others, [schema, routine.name])
      if (after.length > 1) for (const row of before) await client.query((row as { drop: string }).drop)
    } catch (error) {
      if ((error as { code?: unknown }).code !== '42P13') throw error
      // Another return type cannot be put in place of the old one.
      await client.query('rollback to savepoint routine')
      for (const row of before) await client.query((row as { drop: string }).drop)
      await client.query(wanted)
    }
    await client.query('release savepoint routine')
  }
  await client.query(
    `insert into ${s}routine (name, hash, release) values ($1, $2, $3)
         on conflict (name) do update set hash = excluded.hash, release = excluded.release, replaced_at = clock_timestamp()`,
    [routine.name, routine.hash, RELEASE],
  )
}
