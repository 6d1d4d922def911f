// What is said of an error: what is wrong, what to do next, and the exit code. Never a stack, never a password.

import { isConnectionError } from '../engine/translate.ts'
import { isRowlockError, type RowlockErrorCode } from '../ground/errors.ts'
import { grants, RIGHTS, type Role } from '../ground/rights.ts'
import { BULK_VERBS } from '../ground/states.ts'
import { placeOf } from './address.ts'
import { type Exit, UsageError } from './exit.ts'
import { visibleLines } from './visible.ts'

export interface Failure {
  readonly exit: Exit
  readonly says: string
}

const EXIT_OF: Partial<Record<RowlockErrorCode, Exit>> = {
  INVALID_OPTION: 'usage',
  INPUT_NOT_STORABLE: 'usage',
  INPUT_TOO_LARGE: 'usage',
  INPUT_REFUSED: 'usage',
  JOB_NOT_FOUND: 'notFound',
  QUEUE_NOT_FOUND: 'notFound',
  BULK_NOT_FOUND: 'notFound',
  BULK_OPEN: 'partly',
  BULK_BUSY: 'partly',
  IMPORT_NOT_FOUND: 'notFound',
  JOB_BUSY: 'partly',
  WRONG_STATE: 'partly',
  DEDUPE_KEY_TAKEN: 'partly',
  OUTCOME_UNKNOWN: 'unreachable',
  DATABASE_UNAVAILABLE: 'unreachable',
}

/** Where the call went, for what can be said only with it. */
export interface Whereabouts {
  readonly url: string | undefined
  readonly schema: string
  /** The command that was called. */
  readonly command: string | undefined
}

/** How the command ends that threw this, and what is said of it. */
export function failureOf(error: unknown, where: Whereabouts): Failure {
  const message = messageOf(error)
  if (error instanceof UsageError) return { exit: 'usage', says: message }
  const sqlstate = sqlstateOf(error)
  if (sqlstate === '42501') return { exit: 'failed', says: `${message}\n${rights(message, where)}` }
  if (isRowlockError(error, 'OUTCOME_UNKNOWN')) {
    return {
      exit: 'unreachable',
      says: `${message} [${error.code}]\n  Look before you repeat it: rowlock changes`,
    }
  }
  if (isRowlockError(error, 'DATABASE_UNAVAILABLE')) {
    return { exit: 'unreachable', says: `${message}\n${checks(sqlstate, message, where)}` }
  }
  if (isRowlockError(error, 'SCHEMA_MISSING')) return { exit: 'failed', says: missing(message, where) }
  if (isRowlockError(error, 'BULK_OPEN')) {
    const says = `${message}; nothing was changed [${error.code}]`
    const next = `  Go on with it: rowlock bulk resume ${error.bulk}. Or begin another: the same command with --anew`
    return { exit: 'partly', says: `${says}\n${next}` }
  }
  if (isRowlockError(error)) {
    return { exit: EXIT_OF[error.code] ?? 'failed', says: `${message} [${error.code}]` }
  }
  if (isConnectionError(error)) {
    const says = `the connection to the database was lost: ${message}\n${checks(sqlstate, message, where)}`
    return { exit: 'unreachable', says }
  }
  return { exit: 'failed', says: sqlstate === undefined ? message : `${message} (${sqlstate})` }
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return visibleLines(message === '' && error instanceof Error ? error.name : message).join('\n')
}

/** The SQLSTATE of the server's own refusal, behind whatever Rowlock says of it. */
function sqlstateOf(error: unknown): string | undefined {
  let found: string | undefined
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown }
    if (typeof code === 'string' && (/^[0-9A-Z]{5}$/.test(code) || code in NETWORK)) found = code
  }
  return found
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Nothing listens there: is the server running, and is the port right?',
  ENOTFOUND: 'No such host: is the name right, and does this machine resolve it?',
  EAI_AGAIN: 'The name could not be looked up: is DNS reachable from here?',
  ETIMEDOUT: 'No answer: a firewall, a security group, or a private network that this machine is not in.',
  EHOSTUNREACH: 'No route there: a firewall, or a private network that this machine is not in.',
  ENETUNREACH: 'No route there: a firewall, or a private network that this machine is not in.',
  ECONNRESET: 'It was cut: a restart, a failover, a pooler or a firewall in between. Try again.',
}

function checks(code: string | undefined, message: string, { url }: Whereabouts): string {
  const place = placeOf(url)
  const said =
    place === undefined
      ? ''
      : `  Tried ${place.server}, database "${place.database}", user "${place.user}".\n`
  return `${said}  ${hint(code, message)}\n  The address comes from --url, else DATABASE_URL.`
}

function hint(code: string | undefined, message: string): string {
  if (code !== undefined && NETWORK[code] !== undefined) return NETWORK[code]
  if (code === '28P01') return 'The password is wrong, or this user has none.'
  if (code?.startsWith('28'))
    return 'The server does not let this user in from here: see pg_hba.conf, or sslmode.'
  if (code === '3D000')
    return 'There is no such database on this server: check the name behind the last slash.'
  if (code === '53300' || /too many clients|max_client_conn/i.test(message))
    return 'All connections are taken: raise max_connections, or go through a pooler.'
  if (/takes no writes/.test(message))
    return 'This is a standby or read only: give the address of the primary.'
  if (code?.startsWith('57'))
    return 'The server is starting, stopping or failing over: try again in a moment.'
  if (/timeout/i.test(message)) return `${NETWORK.ETIMEDOUT} Or a pooler without a free connection.`
  return 'Check the address, that the server runs, that it lets this user in, and firewall or pooler in between.'
}

function missing(message: string, { schema }: Whereabouts): string {
  return `${message} [SCHEMA_MISSING]\n  Looked in schema "${schema}"; --schema or ROWLOCK_SCHEMA names another.`
}

const ROLE_OF: Readonly<Record<string, Role>> = {
  enqueue: 'producer',
  work: 'worker',
  ...Object.fromEntries(
    [...BULK_VERBS, 'pause', 'resume'].map((verb) => [verb.replace('_', '-'), 'operator']),
  ),
}
/** Only the owner can do what these do. */
const OWNERS: readonly (string | undefined)[] = ['migrate', 'dev']

/** What the owner has to grant: what the work needs that was to be done, to be typed as it stands. */
function rights(message: string, { url, schema, command }: Whereabouts): string {
  const user = quoted(placeOf(url)?.user || 'the_role')
  const [, what, name = ''] =
    /\b(schema|function|table|view|relation|sequence|database) "?([\w $]+?)"?$/.exec(message) ?? []
  if (what === 'database') {
    const grant = `grant create on database ${quoted(name)} to ${user};`
    return `  The owner of the database migrates, or lets this role:\n    ${grant}`
  }
  if (OWNERS.includes(command)) {
    const owner = `the role that owns the schema ${quoted(schema)}`
    return `  Migrate as ${owner}: --url, else DATABASE_URL, says who.`
  }
  const own = ROLE_OF[command ?? ''] ?? 'viewer'
  const has = (role: Role) => (RIGHTS[role].functions as readonly string[]).includes(name)
  const role = what !== 'function' || has(own) ? own : ((Object.keys(RIGHTS) as Role[]).find(has) ?? own)
  const lines = grants(role, user, quoted(schema)).split('\n')
  return [
    `  This role lacks a right. What ${role === 'operator' ? 'an' : 'a'} ${role} needs, its owner grants with:`,
    ...lines.map((line) => `    ${line}`),
  ].join('\n')
}

const quoted = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
