// Turns what a database client throws into errors of Rowlock, where Rowlock has something to say of them.

import { codeOfSqlstate, RowlockError, type RowlockErrorDetail } from '../ground/errors.ts'

interface ServerError {
  readonly code?: unknown
  readonly detail?: unknown
  readonly severity?: unknown
  readonly message?: unknown
}

const MISSING = new Set(['3F000', '42P01', '42883'])
const GONE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ECONNABORTED',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
])
const GONE_TEXT = /terminat|timeout|Connection (ended|closed)|not queryable|socket|Client was closed/i

/** No answer came in time: the connection may be dead, and what was asked may have happened. */
export class AnswerTimeout extends Error {
  override readonly name = 'AnswerTimeout'
}

/** Does this error say that the connection is no good any more, rather than that the statement was refused? */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof AnswerTimeout) return true
  const { code, severity, message } = (error ?? {}) as ServerError
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined) {
    // 08 connection, 57P01 to 57P05 shutdowns and drops, and a server that is now a standby.
    return code.startsWith('08') || /^57P0/.test(code) || isReadOnly(error) || severity === 'FATAL'
  }
  if (typeof code === 'string' && GONE.has(code)) return true
  return error instanceof Error && !(error instanceof RowlockError) && GONE_TEXT.test(String(message))
}

/** Is the moment at fault rather than what was asked? Then the same may work a moment later. */
export function isPassing(error: unknown): boolean {
  if (isConnectionError(error)) return true
  const { code } = (error ?? {}) as ServerError
  if (code === 'DATABASE_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN') return true
  return typeof code === 'string' && /^(40|53|55|57|58)[0-9A-Z]{3}$/.test(code)
}

/** The Rowlock error that a server's error stands for; any other error as it is. */
export function translate(error: unknown): unknown {
  const { code, detail, message } = (error ?? {}) as ServerError
  const known = codeOfSqlstate(code)
  if (known !== undefined && !(error instanceof RowlockError)) {
    return new RowlockError(known, String(message), { ...readDetail(detail), cause: error })
  }
  if (typeof code === 'string' && MISSING.has(code)) {
    return new RowlockError(
      'SCHEMA_MISSING',
      `The database has no Rowlock here, or an older one (${String(message)}): run \`rowlock migrate\`.`,
      { cause: error },
    )
  }
  return error
}

function readDetail(detail: unknown): RowlockErrorDetail {
  try {
    const found = JSON.parse(String(detail))
    return typeof found === 'object' && found !== null ? found : {}
  } catch {
    return {}
  }
}

/** Whether anything was sent decides between these two. */
export const unavailable = (error: unknown): RowlockError =>
  new RowlockError('DATABASE_UNAVAILABLE', `No connection to the database: ${messageOf(error)}`, {
    cause: error,
  })

/** The server is there and lets nobody in as this: password, rights, database. No wait mends it. */
const NOT_LET_IN = /^(28[0-9A-Z]{3}|3D000|42501)$/

/** PgBouncer gives whatever it refuses the code of a broken protocol; these of its words say the same. */
const NOT_LET_IN_BY_A_POOLER =
  /^((SASL|password) authentication failed|no such (user|database)|database ".*" does not exist)/

const isNotLetIn = ({ code, message }: ServerError): boolean =>
  typeof code === 'string' &&
  (NOT_LET_IN.test(code) || (code === '08P01' && NOT_LET_IN_BY_A_POOLER.test(String(message))))

/** DATABASE_UNAVAILABLE when a person must mend what is wrong before a connection is of use; else undefined. */
export function notLetIn(error: unknown): RowlockError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (!isNotLetIn(at as ServerError)) continue
    const message = `The database does not let this worker in (${(at as ServerError).code}): ${at.message}`
    return new RowlockError('DATABASE_UNAVAILABLE', message, { cause: at })
  }
  return undefined
}

/** Was a statement refused, and undone, since its transaction was not READ COMMITTED? */
export const isTooStrict = (error: unknown): boolean => {
  const { code } = (error ?? {}) as ServerError
  return code === 'WRONG_ISOLATION' || code === '40001'
}

/** Did the server refuse to write: a standby, or a session that is set to read only? Nothing has happened then. */
export const isReadOnly = (error: unknown): boolean => {
  const { code, routine } = (error ?? {}) as ServerError & { readonly routine?: unknown }
  // `begin … read write` is refused by a standby with a code that stands for much else, by the check of that setting.
  return code === '25006' || (code === '0A000' && routine === 'call_bool_check_hook')
}

export const readOnly = (error: unknown): RowlockError =>
  new RowlockError(
    'DATABASE_UNAVAILABLE',
    `The database takes no writes here (${messageOf(error)}): ` +
      `it is a standby, or default_transaction_read_only is on for this role.`,
    { cause: error },
  )

export const outcomeUnknown = (what: string, error: unknown): RowlockError =>
  new RowlockError(
    'OUTCOME_UNKNOWN',
    `The connection was lost before the answer to ${what} came (${messageOf(error)}): it may or may not have happened.`,
    { cause: error },
  )

/** What an error says; of one that only gathers others, what those say. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each) => messageOf(each)).join('; ')
  }
  return error instanceof Error ? error.message : String(error)
}
