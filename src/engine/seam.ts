// What Rowlock asks of a database client: one method. Anything that has it can carry a verb in its own transaction.

/**
 * Anything that runs a statement with positional parameters and answers rows as objects: a `pg` client or pool as it
 * is, other clients by a line of code.
 *
 * @example
 * // postgres.js
 * const queryable = (tx: TransactionSql) => ({
 *   query: async (text: string, values: unknown[] = []) => ({ rows: [...(await tx.unsafe(text, values as never[]))] }),
 * })
 */
export interface Queryable {
  // biome-ignore lint/suspicious/noExplicitAny: who knows the rows of a statement says so
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>
}

/** A connection taken from a pool. */
export interface PooledClient extends Queryable {
  release(destroy?: boolean | Error): void
  // biome-ignore lint/suspicious/noExplicitAny: each client has its own arguments
  on?(event: 'error' | 'notification', listener: (...args: any[]) => void): unknown
  // biome-ignore lint/suspicious/noExplicitAny: each client has its own arguments
  removeListener?(event: 'error' | 'notification', listener: (...args: any[]) => void): unknown
}

/** A pool of connections, as `pg` has it. */
export interface PoolLike {
  connect(): Promise<PooledClient>
  end(): Promise<void>
  on?(event: 'error', listener: (error: Error) => void): unknown
  on?(event: 'connect', listener: (client: PooledClient) => void): unknown
  /** How the pool connects; a worker makes its own connections by it, so that it can beat while all others are busy. */
  readonly options?: object
}
