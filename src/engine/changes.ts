// What people and programs changed: the audit, page by page.

import { type ChangeFilter, changeFilterText } from '../ground/filter.ts'
import { look, type PageOptions, type Place, pageArgs } from './look.ts'
import { named } from './named.ts'

/** One change: who did what to which job or queue, and why. */
export interface ChangeRow {
  readonly id: string
  readonly at: Date
  /** As the SQL verb is called. */
  readonly verb: string
  readonly jobId: string | null
  readonly queue: string | null
  readonly actor: string | null
  readonly reason: string | null
  /** What the verb adds. */
  readonly detail: unknown
}

/** A page of changes, newest first. */
export interface ChangePage {
  readonly changes: readonly ChangeRow[]
  /** Where the next page starts; null: nothing older fits. A page may be short, even empty, with a `next`. */
  readonly next: string | null
}

/** A page of the changes that fit. Source: sql/functions/changes_page.sql */
export async function findChanges(
  place: Place,
  filter: ChangeFilter,
  page: PageOptions,
): Promise<ChangePage> {
  const values = [changeFilterText(filter), ...pageArgs(page, 'changes')]
  const args = '$1::text::jsonb, $2::text::integer, $3::text::bigint'
  const { changes, next } = await look<{ changes: Record<string, unknown>[]; next: string | null }>(
    place,
    'changes_page',
    args,
    values,
  )
  return { changes: changes.map(changeOf), next }
}

function changeOf({ detail, ...columns }: Record<string, unknown>): ChangeRow {
  return { ...named(columns), detail } as unknown as ChangeRow
}
