// Verbs with something taken out: how a test breaks the sound ones on its own database.

import { expect } from 'vitest'
import type { TestRowlock } from '../support/database.ts'

/** The body of a verb, and that of its twin: what is taken out must be there. */
export async function twinOf(
  db: TestRowlock,
  name: string,
  find: string,
  replace: string,
): Promise<[sound: string, broken: string]> {
  const sound = await db.value<string>(
    `select pg_get_functiondef(p.oid) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname = 'rowlock' and p.proname = $1`,
    [name],
  )
  const quoted = (text: string) => text.replaceAll('rowlock.', '"rowlock".')
  expect(sound.includes(quoted(find))).toBe(true)
  return [sound, sound.replace(quoted(find), quoted(replace))]
}
