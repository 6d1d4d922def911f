// A pool and a schema: where verbs are called. Connects at first use, starts no timer, keeps no process alive.

import net from 'node:net'
import pg from 'pg'
import { RowlockError } from '../ground/errors.ts'
import { reaching } from './hosts-client.ts'
import { checkSchema, quoteIdentifier } from './schema.ts'
import type { PooledClient, PoolLike, Queryable } from './seam.ts'
import {
  AnswerTimeout,
  isConnectionError,
  isReadOnly,
  isTooStrict,
  outcomeUnknown,
  readOnly,
  translate,
  unavailable,
} from './translate.ts'

/** How to reach the database. */
export interface DatabaseOptions {
  /** A connection string, of one host or several. Give this or `pool`. */
  readonly connectionString?: string | undefined
  /** A pool of your own, as `pg` makes them; it stays yours and is not ended by `close`. */
  readonly pool?: PoolLike | undefined
  /** The schema Rowlock lives in. Default `rowlock`. */
  readonly schema?: string | undefined
  /** Connections of a pool made from `connectionString`. Unit: default 4. They are opened one by one, as needed. */
  readonly maxConnections?: number | undefined
  /** How long one statement may go without an answer. Unit: ms, default 60,000. */
  readonly statementTimeoutMs?: number | undefined
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

/** How a transaction of ours differs. */
export interface TransactionOptions extends CallOptions {
  /** How long it may say nothing between two statements; then the server ends it. Unit: ms. Default: the timeout. */
  readonly idleMs?: number
}

/** How a lane differs. */
export interface LaneOptions {
  /** Leads elsewhere: around a pooler. */
  readonly connectionString?: string | undefined
  /** Unit: ms, default and at most 10,000. */
  readonly connectTimeoutMs?: number
}

const CONNECT_TIMEOUT_MS = 10_000
/** Longer than the pauses between beats and polls: a lane does not connect anew for each of them. */
const LANE_IDLE_MS = 60_000
/** Pools that have a listener of ours: a pool may be shared by many clients. */
const HEARD = new WeakSet<PoolLike>()
const POOL = { allowExitOnIdle: true, keepAlive: true } as const

/** A pool of connections and the schema behind it: where verbs are called. */
export class Database {
  readonly schema: string
  readonly #options: DatabaseOptions
  readonly #prefix: string
  /** How a pool of ours connects; lanes share what it learns of the hosts. */
  readonly #reach: pg.PoolConfig
  #pool: PoolLike | undefined
  #closed = false
  /** What was learnt of the role; lanes share it. */
  #role = { isStrict: false }
  #ending: Promise<void> | undefined

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
    this.#reach = options.connectionString ? reaching(options.connectionString) : {}
  }

  get closed(): boolean {
    return this.#closed
  }

  /**
   * The same database over connections of its own, for work that must not wait for the users' statements.
   * `connectionString` leads elsewhere: around a pooler.
   */
  lane(
    maxConnections: number,
    applicationName: string,
    { connectionString, connectTimeoutMs = CONNECT_TIMEOUT_MS }: LaneOptions = {},
  ): Database {
    const { pool, ...rest } = this.#options
    if (connectionString === undefined && pool !== undefined && !pool.options) return this
    const from: pg.PoolConfig =
      connectionString !== undefined
        ? reaching(connectionString, 'listenConnectionString')
        : pool === undefined
          ? this.#reach
          : copyOf(pool.options as pg.PoolConfig)
    const links: Links = { sockets: new Set(), isCut: false }
    const own = new pg.Pool({
      ...from,
      ...POOL,
      idleTimeoutMillis: LANE_IDLE_MS,
      max: maxConnections,
      application_name: applicationName,
      connectionTimeoutMillis: Math.min(from.connectionTimeoutMillis || CONNECT_TIMEOUT_MS, connectTimeoutMs),
      stream: from.stream ?? (() => tracked(links)),
    })
    const { connectionString: _, ...others } = rest
    const lane = new Database({ ...others, pool: own as unknown as PoolLike })
    lane.#links = links
    lane.#role = this.#role
    return lane
  }

  /** Where handlers' transactions run: the user's own pool if there is one, since it is their work. */
  transactionLane(maxConnections: number, applicationName: string, options?: LaneOptions): Database {
    return this.#options.pool === undefined ? this.lane(maxConnections, applicationName, options) : this
  }

  /** How many connections it may have at most; undefined for a pool that does not say. */
  get maxConnections(): number | undefined {
    const { max } = (this.#open().options ?? {}) as { max?: unknown }
    return typeof max === 'number' ? max : undefined
  }

  /** Of a lane: let it have so many connections from now on. What is no lane is left alone. */
  resizeLane(maxConnections: number): void {
    if (this.#links === undefined) return
    ;(this.#open().options as { max: number }).max = maxConnections
  }

  #links: Links | undefined

  /**
   * End a lane: nothing new begins, idle connections say goodbye, and whatever is left after `cutAfterMs` is cut off,
   * so that no link that is dead or still being made keeps the process alive. What is no lane is left alone.
   */
  async closeLane(cutAfterMs = 500): Promise<void> {
    const links = this.#links
    if (links === undefined) return
    const { sockets } = links
    const timer = setTimeout(() => {
      links.isCut = true
      for (const socket of sockets) socket.destroy()
    }, cutAfterMs)
    await this.close().catch(() => {})
    // The pool is done when it has let go of its clients; their sockets may still be closing.
    while (sockets.size > 0) {
      const [socket] = sockets
      await new Promise((resolve) => socket!.once('close', resolve))
    }
    clearTimeout(timer)
  }

  /** The text of a call: `verb(…)` of this schema, answering JSON as text, the same through every client. */
  callText(verb: string, args: string): string {
    const own = args.replace(/\browlock\./g, () => this.#prefix)
    return `select ${this.#prefix}${quoteIdentifier(verb)}(${own})::text as reply`
  }

  /** Call a verb on a connection of the pool. */
  async call<T>(verb: string, args: string, values: unknown[], options: CallOptions = {}): Promise<T> {
    const call = (client: PooledClient) => this.callOn<T>(client, verb, args, values, options)
    if (!this.#role.isStrict) {
      try {
        return await this.use(call, options)
      } catch (error) {
        if (!isTooStrict(error)) throw error
        // The role's default isolation is stricter than the verbs work in: from here on each says its own.
        this.#role.isStrict = true
      }
    }
    return this.transaction(call, options)
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
    let gone: unknown
    // A checked-out client without a listener takes the process down.
    const note = (error: unknown) => {
      gone ??= error
    }
    client.on?.('error', note)
    let broken = false
    try {
      return await body(client)
    } catch (error) {
      broken = isConnectionError(error)
      if (isReadOnly(error)) throw readOnly(error)
      if (broken && options.write !== undefined) throw outcomeUnknown(options.write, gone ?? error)
      throw error
    } finally {
      client.removeListener?.('error', note)
      client.release(broken)
    }
  }

  /**
   * Run statements in one READ COMMITTED transaction. The server ends it when nothing is heard of it for long: a
   * process that hangs, or is gone without a word, would else hold its locks for ever. That is said in the message that
   * begins it, so that it costs no round trip and there is no moment in between.
   */
  async transaction<T>(
    body: (client: PooledClient) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    const idleMs = Math.ceil(options.idleMs ?? this.#timeoutMs(options))
    const begin = `begin isolation level read committed read write;
      set local idle_in_transaction_session_timeout = ${idleMs}`
    return this.use(async (client) => {
      await this.#run(client, begin, [], options)
      try {
        const value = await body(client)
        await this.#run(client, 'commit', [], options)
        return value
      } catch (error) {
        // A connection that broke has rolled back by itself; one that does not answer would hold a rollback for ever.
        if (!isConnectionError(error)) {
          await this.#run(client, 'rollback', [], options).catch((failure) => {
            throw isConnectionError(failure) ? failure : error
          })
        }
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
    this.#closed = true
    const isOurs = this.#links !== undefined || this.#options.pool === undefined
    this.#ending ??= isOurs ? (this.#pool ?? this.#options.pool)?.end() : undefined
    await this.#ending
  }

  #timeoutMs({ timeoutMs }: CallOptions): number {
    return timeoutMs ?? this.#options.statementTimeoutMs ?? 60_000
  }

  #open(): PoolLike {
    if (this.#pool !== undefined) return this.#pool
    const { pool, maxConnections = 4, applicationName = 'rowlock' } = this.#options
    this.#pool =
      pool ??
      (new pg.Pool({
        ...this.#reach,
        ...POOL,
        max: maxConnections,
        application_name: applicationName,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        idleTimeoutMillis: 10_000,
      }) as unknown as PoolLike)
    // An idle connection that dies is no event for the process: the next call opens another. Nor is one whose server
    // says goodbye in the breath in which it says that it is ready: then nobody who asked for it listens yet.
    if (!HEARD.has(this.#pool)) {
      this.#pool.on?.('error', () => {})
      this.#pool.on?.('connect', (client) => void client.on?.('error', () => {}))
    }
    HEARD.add(this.#pool)
    return this.#pool
  }

  async #run(
    queryable: Queryable,
    text: string,
    values: unknown[],
    options: CallOptions,
  ): Promise<{ rows: unknown[] }> {
    try {
      return await withTimeout(queryable.query(text, values), this.#timeoutMs(options))
    } catch (error) {
      throw translate(error)
    }
  }
}

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

/** The settings of a pool, whatever way it connects. The pool hides its password from a spread. */
function copyOf(options: pg.PoolConfig): pg.PoolConfig {
  return { ...options, ...(options.password !== undefined && { password: options.password }) }
}

/** Of a lane: every socket that is open or being opened. */
interface Links {
  readonly sockets: Set<net.Socket>
  /** The lane has come to its end: who tries another host now finds none. */
  isCut: boolean
}

function tracked({ sockets, isCut }: Links): net.Socket {
  const socket = new net.Socket()
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
  if (isCut) setImmediate(() => socket.destroy())
  return socket
}
