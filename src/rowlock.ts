// The front of the house: a client that enqueues and operates, and makes workers.

import { type Bulk, type BulkOptions, type BulkRow, beginBulk, listBulks, openBulk } from './engine/bulk.ts'
import { Database, type DatabaseOptions } from './engine/database.ts'
import { type MigrateReport, migrate } from './engine/migrate.ts'
import type { Queryable } from './engine/seam.ts'
import { type EnqueueMiddleware, Verbs } from './engine/verbs.ts'
import { RowlockError } from './ground/errors.ts'
import type { JobFilter } from './ground/filter.ts'
import { checkInteger } from './ground/integer.ts'
import { checkOptions } from './ground/nearest.ts'
import { show } from './ground/show.ts'
import type { BulkVerb } from './ground/states.ts'
import type { WorkerOptions } from './worker/options.ts'
import { Worker } from './worker/worker.ts'

/** Options of a client: a `connectionString` or a `pool`, and where Rowlock lives. */
export type RowlockOptions = DatabaseOptions

const DATABASES = new WeakMap<Rowlock, Database>()

/** The database of a client: for the testing kit, not for users. */
export function databaseOf(rowlock: Rowlock): Database {
  const database = DATABASES.get(rowlock)
  if (database !== undefined) return database
  throw new RowlockError('INVALID_OPTION', 'this takes what createRowlock made', { path: 'rowlock' })
}

/** A client: enqueues, operates, makes workers. Made by {@link createRowlock}. */
export class Rowlock extends Verbs {
  readonly #database: Database
  readonly #middleware: EnqueueMiddleware[]

  constructor(database: Database, middleware: EnqueueMiddleware[] = []) {
    super(database, undefined, middleware)
    this.#database = database
    this.#middleware = middleware
    DATABASES.set(this, database)
  }

  /**
   * Every verb in the caller's transaction: what it does exists when, and only if, that commits.
   *
   * @example
   * await client.query('begin')
   * await client.query('insert into invoice …')
   * await rowlock.in(client).enqueue(syncInvoice, { invoiceId: '42' })
   * await client.query('commit')
   */
  in(tx: Queryable): Verbs {
    if (typeof tx?.query !== 'function') {
      throw new RowlockError(
        'INVALID_OPTION',
        'in takes a client with query(text, values), in its transaction',
        { path: 'tx' },
      )
    }
    if ('totalCount' in tx && 'idleCount' in tx) {
      throw new RowlockError(
        'INVALID_OPTION',
        'in takes a client that is in a transaction, not a pool: its statements may run on several connections',
        { path: 'tx' },
      )
    }
    return new Verbs(this.#database, tx, this.#middleware)
  }

  /** Wrap each statement of an enqueue. The first one added is the outermost. */
  use(middleware: EnqueueMiddleware): this {
    if (typeof middleware !== 'function') {
      throw new RowlockError('INVALID_OPTION', 'use takes a function (context, next)', { path: 'middleware' })
    }
    this.#middleware.push(middleware)
    return this
  }

  /**
   * Begin one verb for all jobs that a filter finds: checked and counted, nothing changed yet; `run` of what is
   * returned does it. Where the filter names no state, it is of all states that the verb applies to. One that restricts
   * nothing is refused, unless it says `all: true`. Jobs that are enqueued from now on are left alone. The same change
   * begun twice would retry each job twice: while one has not ended, another needs `anew`.
   *
   * Errors: INVALID_OPTION, BULK_OPEN, DATABASE_UNAVAILABLE.
   * Source: sql/functions/begin_bulk.sql
   * @example
   * const bulk = await rowlock.bulk('redrive', { queue: 'mail', cause: 'SmtpError' }, { actor: 'eve' })
   * console.log(`${bulk.row.matched} dead letters`)
   * const { changed, refused } = await bulk.run()
   */
  bulk(verb: BulkVerb, filter: JobFilter, options: BulkOptions = {}): Promise<Bulk> {
    return beginBulk(this.#database, verb, filter, options)
  }

  /**
   * A bulk change that was begun, here or in another process: to look at it, go on with it or stop it.
   *
   * Errors: INVALID_OPTION, BULK_NOT_FOUND.
   */
  openBulk(id: string): Promise<Bulk> {
    return openBulk(this.#database, id)
  }

  /** Bulk changes, the newest first; those that ended more than 90 days ago are gone. Unit of `limit`: default 50. */
  bulks({ limit = 50 }: { readonly limit?: number } = {}): Promise<readonly BulkRow[]> {
    return listBulks(this.#database, limit)
  }

  /** A worker for these handlers. Nothing happens before its `start()`. Errors: INVALID_OPTION, HANDLER_CONFLICT. */
  worker(options: WorkerOptions): Worker {
    return new Worker(this.#database, options)
  }

  /**
   * Bring the schema to this release. Safe when many processes start at once.
   *
   * Errors: SCHEMA_NEWER, MIGRATION_CHANGED, MIGRATION_FAILED, DATABASE_UNAVAILABLE.
   */
  migrate(): Promise<MigrateReport> {
    return migrate(this.#database)
  }

  /** End the connections that this client made. A pool that was passed in stays open. Idempotent. */
  close(): Promise<void> {
    return this.#database.close()
  }
}

const KNOWN = [
  'connectionString',
  'pool',
  'schema',
  'maxConnections',
  'statementTimeoutMs',
  'applicationName',
]

/**
 * Make a client. It connects at first use, starts no timer and keeps no process alive.
 *
 * Errors: INVALID_OPTION.
 * @example
 * const rowlock = createRowlock({ connectionString: process.env.DATABASE_URL })
 */
export function createRowlock(options: RowlockOptions): Rowlock {
  checkOptions(options, KNOWN, 'createRowlock')
  for (const name of ['connectionString', 'applicationName'] as const) {
    const value = options[name]
    if (value === undefined || (typeof value === 'string' && value !== '')) continue
    throw new RowlockError('INVALID_OPTION', `${name} must be a text; got ${show(value)}`, { path: name })
  }
  const { maxConnections, statementTimeoutMs } = options
  if (maxConnections !== undefined)
    checkInteger(maxConnections, { name: 'maxConnections', min: 1, max: 1_000 })
  if (statementTimeoutMs !== undefined) {
    checkInteger(statementTimeoutMs, { name: 'statementTimeoutMs', min: 1, max: 2 ** 31 - 1 })
  }
  return new Rowlock(new Database(options))
}
