// A pool and a schema: where verbs are called. Connects at first use, starts no timer, keeps no process alive.

import pg from 'pg'
import { RowlockError } from '../ground/errors.ts'
import { checkSchema, quoteIdentifier } from './schema.ts'
import type { PooledClient, PoolLike, Queryable } from './seam.ts'
import { isConnectionError, outcomeUnknown, translate, unavailable } from './translate.ts'

/** How to reach the database. */
export interface DatabaseOptions {
  /** A connection string. Give this or `pool`. */
  readonly connectionString?: string
  /** A pool of your own, as `pg` makes them; it stays yours and is not ended by `close`. */
  readonly pool?: PoolLike
  /** The schema Rowlock lives in. Default `rowlock`. */
  readonly schema?: string
  /** Connections of a pool made from `connectionString`. Unit: default 4. They are opened one by one, as needed. */
  readonly maxConnections?: number
  /** How long one statement may go without an answer. Unit: ms, default 60,000. */
  readonly statementTimeoutMs?: number
  /** Shown in pg_stat_activity. Default `rowlock`. */
  readonly applicationName?: string
}

/** How one call differs. */
export interface CallOptions {
  /** Unit: ms. Default: the database's. */
  readonly timeoutMs?: number
  /** Says what was asked, and that it was a write: a lost answer is then OUTCOME_UNKNOWN. */
  readonly write?: string
}

export class Database {
  readonly schema: string
  readonly #options: DatabaseOptions
  readonly #prefix: string
  #pool: PoolLike | undefined
  #closed = false

  constructor(options: DatabaseOptions) {
    this.schema = checkSchema(options.schema ?? 'rowlock')
    this.#prefix = `${quoteIdentifier(this.schema)}.`
    this.#options = options
    if (options.pool !== undefined && options.connectionString !== undefined) {
      throw new RowlockError('INVALID_OPTION', 'give connectionString or pool, not both', { path: 'pool' })
    }
    if (options.pool === undefined && !options.connectionString) {
      throw new RowlockError('INVALID_OPTION', 'give connectionString or pool', { path: 'connectionString' })
    }
    if (options.pool !== undefined && typeof options.pool.connect !== 'function') {
      throw new RowlockError('INVALID_OPTION', 'pool must be a pool of pg: it has no connect()', {
        path: 'pool',
      })
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  /**
   * The same database over connections of its own, for work that must not wait for the users' statements.
   * `connectionString` leads elsewhere: around a pooler.
   */
  lane(maxConnections: number, applicationName: string, connectionString?: string): Database {
    const { pool, ...rest } = this.#options
    if (connectionString !== undefined)
      return Database.asLane(new Database({ ...rest, connectionString, maxConnections, applicationName }))
    if (pool === undefined) return Database.asLane(new Database({ ...rest, maxConnections, applicationName }))
    if (!pool.options) return this
    // A copy of the pool's own settings: whatever way it connects, passwords made by functions included.
    const own = new pg.Pool({
      ...(pool.options as pg.PoolConfig),
      max: maxConnections,
      application_name: applicationName,
      allowExitOnIdle: true,
    })
    const lane = Database.asLane(new Database({ ...rest, pool: own as unknown as PoolLike }))
    lane.#owned = true
    return lane
  }

  /** Where handlers' transactions run: the user's own pool if there is one, since it is their work. */
  transactionLane(maxConnections: number, applicationName: string): Database {
    return this.#options.pool === undefined ? this.lane(maxConnections, applicationName) : this
  }

  #owned = false
  #isLane = false
  readonly #busy = new Set<PooledClient>()

  /** End a lane; whatever still waits for an answer is cut off. What is no lane is left alone. */
  async closeLane(): Promise<void> {
    if (!this.#isLane) return
    for (const client of this.#busy) {
      const { connection } = client as { connection?: { stream?: { destroy?: () => void } } }
      connection?.stream?.destroy?.()
    }
    await this.close()
  }

  static asLane(database: Database): Database {
    database.#isLane = true
    return database
  }

  /** The text of a call: `verb(…)` of this schema, answering JSON as text, the same through every client. */
  callText(verb: string, args: string): string {
    return `select ${this.#prefix}${quoteIdentifier(verb)}(${args.replace(/\browlock\./g, () => this.#prefix)})::text as reply`
  }

  /** Call a verb on a connection of the pool. */
  async call<T>(verb: string, args: string, values: unknown[], options: CallOptions = {}): Promise<T> {
    return this.use((client) => this.callOn<T>(client, verb, args, values, options), options)
  }

  /** Call a verb through anything that can run a statement. */
  async callOn<T>(
    queryable: Queryable,
    verb: string,
    args: string,
    values: unknown[],
    options: CallOptions = {},
  ): Promise<T> {
    const { rows } = await this.#run(queryable, this.callText(verb, args), values, options)
    const reply = (rows[0] as { reply: string | null } | undefined)?.reply
    return (reply === null || reply === undefined ? null : parseReply(reply)) as T
  }

  /** Run a statement of this schema: `rowlock.` in the text stands for its name. */
  async query<Row>(text: string, values: unknown[] = [], options: CallOptions = {}): Promise<Row[]> {
    return this.use((client) => this.queryOn<Row>(client, text, values, options), options)
  }

  /** The same through anything that can run a statement. */
  async queryOn<Row>(
    queryable: Queryable,
    text: string,
    values: unknown[] = [],
    options: CallOptions = {},
  ): Promise<Row[]> {
    const sql = text.replace(/\browlock\./g, () => this.#prefix)
    return (await this.#run(queryable, sql, values, options)).rows as Row[]
  }

  /** Borrow a connection. One that broke is destroyed, not given back. */
  async use<T>(body: (client: PooledClient) => Promise<T>, options: CallOptions = {}): Promise<T> {
    const client = await this.connect()
    const ignore = () => {} // a checked-out client without a listener takes the process down
    client.on?.('error', ignore)
    let broken = false
    this.#busy.add(client)
    try {
      return await body(client)
    } catch (error) {
      broken = isConnectionError(error) || isTimeout(error)
      if (broken && options.write !== undefined) throw outcomeUnknown(options.write, error)
      throw error
    } finally {
      this.#busy.delete(client)
      client.removeListener?.('error', ignore)
      client.release(broken)
    }
  }

  /** Run statements in one READ COMMITTED transaction. */
  async transaction<T>(body: (client: PooledClient) => Promise<T>, options: CallOptions = {}): Promise<T> {
    return this.use(async (client) => {
      await client.query('begin isolation level read committed read write')
      try {
        const value = await body(client)
        await client.query('commit')
        return value
      } catch (error) {
        await client.query('rollback').catch(() => {})
        throw error
      }
    }, options)
  }

  /** A connection of the pool. Errors: CLOSED, DATABASE_UNAVAILABLE. */
  async connect(): Promise<PooledClient> {
    if (this.#closed) throw new RowlockError('CLOSED', 'this client was closed: make a new one')
    try {
      return await this.#open().connect()
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** End the pool if it is ours. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#pool !== undefined && (this.#owned || this.#options.pool === undefined)) await this.#pool.end()
  }

  #open(): PoolLike {
    if (this.#pool !== undefined) return this.#pool
    const { pool, connectionString, maxConnections = 4, applicationName = 'rowlock' } = this.#options
    this.#pool =
      pool ??
      (new pg.Pool({
        connectionString,
        max: maxConnections,
        application_name: applicationName,
        allowExitOnIdle: true,
        keepAlive: true,
        connectionTimeoutMillis: 10_000,
        idleTimeoutMillis: 10_000,
      }) as unknown as PoolLike)
    // An idle connection that dies is no event for the process: the next call opens another.
    this.#pool.on?.('error', () => {})
    return this.#pool
  }

  async #run(
    queryable: Queryable,
    text: string,
    values: unknown[],
    options: CallOptions,
  ): Promise<{ rows: unknown[] }> {
    const timeoutMs = options.timeoutMs ?? this.#options.statementTimeoutMs ?? 60_000
    try {
      return await withTimeout(queryable.query(text, values), timeoutMs)
    } catch (error) {
      throw translate(error)
    }
  }
}

class AnswerTimeout extends Error {
  override name = 'AnswerTimeout'
}

const isTimeout = (error: unknown) => error instanceof AnswerTimeout

/** A server that never answers (a dead link, not a refusal) must not hold its caller for ever. */
function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new AnswerTimeout(`no answer from the database within ${timeoutMs} ms`))
    }, timeoutMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Most verbs answer JSON; those that answer a word, a number or an array of numbers do so in PostgreSQL's own form. */
function parseReply(reply: string): unknown {
  const first = reply[0]
  return first === '{' || first === '[' || first === '"' ? JSON.parse(reply) : reply
}
