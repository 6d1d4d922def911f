// Every error Rowlock raises: a stable code, the same in SQL (SQLSTATE class RL) and TypeScript, and what to do next.
// Messages are for people and may change; codes never do.

/**
 * One row per error: its SQLSTATE, when it is raised, and what the caller does next. The docs are made from this
 * table.
 */
export const ERRORS = {
  INVALID_OPTION: {
    sqlstate: 'RL001',
    when: 'An option is unknown, of the wrong type or out of range.',
    next: 'Correct the call; `path` names the option, the message the nearest known one.',
  },
  INPUT_NOT_STORABLE: {
    sqlstate: 'RL002',
    when: 'An input has no faithful JSON form in PostgreSQL: NUL, a lone surrogate, BigInt, a function, a cycle, NaN …',
    next: 'Correct the value that `path` names.',
  },
  INPUT_TOO_LARGE: {
    sqlstate: 'RL003',
    when: 'An input is larger than the limit.',
    next: 'Store the data elsewhere and enqueue a reference to it.',
  },
  INPUT_REFUSED: {
    sqlstate: 'RL004',
    when: "An input does not pass the job's own schema.",
    next: 'Correct the input; `issues` holds what the schema said.',
  },
  JOB_NOT_FOUND: {
    sqlstate: 'RL010',
    when: 'No job has this id: it never existed, or its history has been dropped.',
    next: 'Check the id.',
  },
  QUEUE_NOT_FOUND: {
    sqlstate: 'RL017',
    when: 'No job, worker, setting or change of settings names this queue.',
    next: 'Check the name; the message has the nearest known one.',
  },
  JOB_BUSY: {
    sqlstate: 'RL011',
    when: 'The job moved between its phases each time the verb looked.',
    next: 'Call again; nothing was changed.',
  },
  WRONG_STATE: {
    sqlstate: 'RL012',
    when: "The verb does not apply to the job's state.",
    next: 'Look at the job; `state` names where it is. Nothing was changed.',
  },
  DEDUPE_KEY_TAKEN: {
    sqlstate: 'RL013',
    when: 'A redrive or retry needs a dedupe key that another live job holds.',
    next: 'Wait for the job that `holder` names, or cancel it; nothing was changed.',
  },
  BULK_NOT_FOUND: {
    sqlstate: 'RL014',
    when: 'No bulk change has this id: it never existed, or it ended more than 90 days ago.',
    next: 'Check the id; the list of bulk changes has those that can go on.',
  },
  BULK_BUSY: {
    sqlstate: 'RL015',
    when: 'A bulk change is to be stopped, and a step of it, in a transaction of somebody, has not ended within 2 s.',
    next: 'Stop it again; when this goes on, look for the transaction that did a step and is still open.',
  },
  BULK_OPEN: {
    sqlstate: 'RL016',
    when: 'A bulk change is to begin that is the same as one that has not ended: one verb, one filter.',
    next: 'Go on with the one that `bulk` names, or stop it; `anew` begins another all the same.',
  },
  QUEUE_FULL: {
    sqlstate: 'RL018',
    when: 'About as many jobs wait in a queue as its `maxWaiting` lets in; nothing of the call was enqueued.',
    next: 'Slow down and call again later, or let fewer producers in; what waits is worked off meanwhile.',
  },
  LEASE_LOST: {
    sqlstate: 'RL020',
    when: 'The lease ran out, or the job was given to another owner, before this write.',
    next: 'Stop: what the job wrote in this transaction must not commit. Another attempt has it.',
  },
  WRONG_ISOLATION: {
    sqlstate: 'RL030',
    when: 'A verb that needs READ COMMITTED was called in a stricter transaction.',
    next: "Call it in a transaction of its own, or begin with 'isolation level read committed'.",
  },
  SCHEMA_MISSING: {
    sqlstate: 'RL040',
    when: 'The database has no Rowlock in this schema.',
    next: 'Run `rowlock migrate`.',
  },
  SCHEMA_OUTDATED: {
    sqlstate: 'RL041',
    when: "The database's Rowlock is older than this release needs.",
    next: 'Run `rowlock migrate`.',
  },
  SCHEMA_NEWER: {
    sqlstate: 'RL042',
    when: 'The database was migrated by a newer release, in a way this one cannot work with.',
    next: 'Upgrade this process to that release.',
  },
  MIGRATION_CHANGED: {
    sqlstate: 'RL043',
    when: 'A migration that was applied differs from the one this release ships.',
    next: 'Use a released package; an applied migration is never edited.',
  },
  MIGRATION_FAILED: {
    sqlstate: 'RL044',
    when: 'A migration could not be applied: rights are missing, or an object of the same name is in the way.',
    next: 'Do what the message says and run `rowlock migrate` again; what was applied stays applied.',
  },
  OUTCOME_UNKNOWN: {
    sqlstate: 'RL050',
    when: 'The connection was lost after a write was sent and before its answer came.',
    next: 'Repeat the call with a dedupe key: if the first one was stored, the repeat finds its job.',
  },
  DATABASE_UNAVAILABLE: {
    sqlstate: 'RL051',
    when: 'No connection could be made; nothing was sent.',
    next: 'Try again; check the address, the server and the connection limit.',
  },
  CLOSED: {
    sqlstate: 'RL052',
    when: 'The client or worker was closed.',
    next: 'Make a new one.',
  },
  HANDLER_CONFLICT: {
    sqlstate: 'RL060',
    when: 'Two handlers of one worker name the same kind.',
    next: 'Keep one of them.',
  },
  EMBEDDED_UNAVAILABLE: {
    sqlstate: 'RL070',
    when: 'The embedded PostgreSQL is not installed for this platform, or would not start.',
    next: 'Do what the message says, or set DATABASE_URL to a server of your own.',
  },
  IMPORT_CHANGED: {
    sqlstate: 'RL080',
    when: 'An import is gone on with, and what was read of its file so far is not what was imported under its key.',
    next: 'Use the same file and options, or another key for another file; nothing was enqueued.',
  },
  IMPORT_NOT_FOUND: {
    sqlstate: 'RL081',
    when: 'No import has this key.',
    next: 'Begin it first; nothing was enqueued.',
  },
} as const satisfies Record<string, { sqlstate: `RL${string}`; when: string; next: string }>

/** The stable code of a Rowlock error. */
export type RowlockErrorCode = keyof typeof ERRORS

/** What an error says beyond its code and message; which fields are set depends on the code. */
export interface RowlockErrorDetail {
  /** Where in the input or the options the fault is, as `a.b[3]`. */
  readonly path?: string
  /** In a bulk call: which of the jobs, counted from 0. */
  readonly index?: number
  /** What the job's own schema said. */
  readonly issues?: readonly { readonly message: string; readonly path?: readonly unknown[] }[]
  /** The state the job was found in. */
  readonly state?: string
  /** The id of the job that holds the dedupe key. */
  readonly holder?: string
  /** The id of the bulk change that is the same. */
  readonly bulk?: string
}

/**
 * An error with a stable code. Narrow with {@link isRowlockError} rather than `instanceof`: two copies of the
 * package in one process have two classes.
 */
export class RowlockError extends Error {
  readonly code: RowlockErrorCode
  /** The same code in SQL. */
  readonly sqlstate: string
  declare readonly path?: string
  declare readonly index?: number
  declare readonly issues?: RowlockErrorDetail['issues']
  declare readonly state?: string
  declare readonly holder?: string
  declare readonly bulk?: string

  constructor(
    code: RowlockErrorCode,
    message: string,
    detail: RowlockErrorDetail & { readonly cause?: unknown } = {},
  ) {
    const { cause, ...fields } = detail
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'RowlockError'
    this.code = code
    this.sqlstate = ERRORS[code].sqlstate
    Object.assign(this, fields)
  }
}

/**
 * Is this an error of Rowlock, and, when a code is given, the one with that code?
 *
 * @example
 * if (isRowlockError(error, 'OUTCOME_UNKNOWN')) await rowlock.enqueue(job, input, { dedupeKey })
 */
export function isRowlockError<C extends RowlockErrorCode = RowlockErrorCode>(
  error: unknown,
  code?: C,
): error is RowlockError & { readonly code: C } {
  if (typeof error !== 'object' || error === null) return false
  const found = error as { name?: unknown; code?: unknown }
  if (found.name !== 'RowlockError' || typeof found.code !== 'string' || !(found.code in ERRORS)) return false
  return code === undefined || found.code === code
}

const BY_SQLSTATE = new Map(
  Object.entries(ERRORS).map(([code, row]) => [row.sqlstate as string, code as RowlockErrorCode]),
)

/** The code that a SQLSTATE of class RL stands for. */
export function codeOfSqlstate(sqlstate: unknown): RowlockErrorCode | undefined {
  return typeof sqlstate === 'string' ? BY_SQLSTATE.get(sqlstate) : undefined
}
