// Writes SQL for a schema of any name. The files say `rowlock.`; everything that reaches a server says the real name.

import { RowlockError } from '../ground/errors.ts'
import { isStorableText } from '../ground/text.ts'

/** An identifier, quoted. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A string literal, quoted, whatever `standard_conforming_strings` says. */
export const quoteLiteral = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return text.includes('\\') ? `E${quoted}` : quoted
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/

/**
 * Check the name of a schema before any SQL is made of it.
 *
 * Errors: INVALID_OPTION for an empty name, one beyond 63 bytes (PostgreSQL would cut it), one with control
 * characters, one that begins with `pg_`.
 */
export function checkSchema(name: unknown): string {
  const refuse = (why: string) => new RowlockError('INVALID_OPTION', `schema ${why}`, { path: 'schema' })
  if (typeof name !== 'string' || name === '') throw refuse('must be a name')
  if (Buffer.byteLength(name) > 63) throw refuse('must have at most 63 bytes: PostgreSQL would cut it')
  if (CONTROL.test(name) || !isStorableText(name)) throw refuse('must have no control characters')
  if (/^pg_/i.test(name)) throw refuse('must not begin with pg_: PostgreSQL keeps those names for itself')
  return name
}

/** A dollar quote that the schema's name does not end. */
export function dollarQuote(schema: string): string {
  let tag = 'rowlock'
  while (schema.includes(`$${tag}$`)) tag += '_'
  return `$${tag}$`
}

/** The text of a SQL file for this schema. */
export function renderSql(sql: string, schema: string): string {
  const quote = dollarQuote(schema)
  const prefix = `${quoteIdentifier(schema)}.`
  return (
    sql
      .replaceAll('$rowlock$', () => quote)
      // In one go: a schema may itself be called `rowlock.x`.
      .replace(/'rowlock\.(\w+)'|\browlock\./g, (_, object?: string) =>
        object === undefined ? prefix : quoteLiteral(`${prefix}${object}`),
      )
  )
}
