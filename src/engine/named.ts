// Rows as SQL names them, and as TypeScript does: snake_case to camelCase, instants to dates.

import type { Place } from './look.ts'

const INSTANT = /^(\d{4,}-\d\d-\d\dT[\d:.]+)([+-]\d\d:\d\d)(?::(\d\d))?$/
const INSTANTS = /(_at|^at|^since|^until)$/

/** Is this text an instant as to_json writes it? */
function isInstant(value: unknown): value is string {
  return typeof value === 'string' && INSTANT.test(value)
}

/** As to_json writes it. Before there were time zones, places were seconds apart, which Date does not read. */
function instant(text: string): Date {
  const [, local, offset, seconds = '0'] = INSTANT.exec(text)!
  const sign = offset!.startsWith('-') ? 1 : -1
  return new Date(new Date(`${local}${offset}`).getTime() + sign * Number(seconds) * 1000)
}

/** A row's columns by their names in TypeScript. What columns hold is left alone, but for instants. */
export function named(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      INSTANTS.test(name) && isInstant(value) ? instant(value) : value,
    ]),
  )
}

/** The rows of a query, named for TypeScript. They come as one JSON text, the same through every client. */
export async function namedRows<Row>(
  { database, queryable }: Place,
  query: string,
  values: unknown[],
): Promise<Row[]> {
  const text = `select coalesce(json_agg(to_json(r)), '[]')::text as reply from (${query}) as r`
  const [row] =
    queryable === undefined
      ? await database.query<{ reply: string }>(text, values)
      : await database.queryOn<{ reply: string }>(queryable, text, values)
  return (JSON.parse(row!.reply) as Record<string, unknown>[]).map(named) as Row[]
}
