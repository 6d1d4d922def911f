// The shapes of what the SQL files are embedded as.

/** One step of the schema's history: append-only, hash-locked. */
export interface Migration {
  readonly number: number
  readonly name: string
  readonly hash: string
  /** A worker that does not know this migration must stop. */
  readonly breaking: boolean
  /** Whether it runs inside a transaction; one that does not can be run again after it was interrupted. */
  readonly transaction: boolean
  readonly sql: string
}

/** A function or view: replaced whenever its text changes. */
export interface Routine {
  readonly name: string
  readonly hash: string
  readonly sql: string
}
