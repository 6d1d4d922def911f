// The connection of one handler's transaction: begun, cut, ended, and given back in the state it deserves.

import type { Database } from '../engine/database.ts'
import type { PooledClient, Queryable } from '../engine/seam.ts'
import { isConnectionError } from '../engine/translate.ts'
import { RowlockError } from '../ground/errors.ts'
import { endingWord } from './ending-word.ts'

/** A rollback takes no time: one that does stands behind a statement that still runs. */
const ROLLBACK_MS = 1_000

/** One connection with one transaction, for one handler. */
export class Session {
  readonly #client: PooledClient
  readonly #transactions: Database
  /** Another way to the server, for what cannot be said on the session itself. */
  readonly #beside: Database
  readonly #timeoutMs: number
  #isOpen = true
  #isCut = false
  #isBroken = false
  #isReleased = false
  #mark: { readonly pid: number; readonly began: string } | undefined
  #ended: Promise<unknown> | undefined
  #onGone: (() => void) | undefined

  private constructor(client: PooledClient, transactions: Database, beside: Database, timeoutMs: number) {
    this.#client = client
    this.#transactions = transactions
    this.#beside = beside
    this.#timeoutMs = timeoutMs
    client.on?.('error', this.#gone)
    client.on?.('end' as 'error', this.#gone)
  }

  static async open(transactions: Database, beside: Database, timeoutMs: number): Promise<Session> {
    return new Session(await transactions.connect(), transactions, beside, timeoutMs)
  }

  /** What a handler writes through. Refuses what comes after the end: the connection may be another's by then. */
  readonly tx: Queryable = {
    query: async (text: string, values?: unknown[]) => {
      if (!this.#isOpen) throw new RowlockError('CLOSED', 'the transaction of this handler has ended')
      const word = endingWord(text)
      if (word !== undefined) {
        const why = `tx takes no ${word}: the worker commits when the handler returns, and rolls back when it throws`
        throw new RowlockError('INVALID_OPTION', why, { path: 'tx' })
      }
      return this.#noting(this.#client.query(text, values))
    },
  }

  /** The server's process of it, once it has begun. */
  get pid(): number | undefined {
    return this.#mark?.pid
  }

  /** Whether the connection itself failed. What a handler throws says nothing of that. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** The server ends by itself what outlives this. */
  async begin(leftMs: number): Promise<void> {
    const once = { timeoutMs: this.#timeoutMs }
    const begin = 'begin isolation level read committed read write'
    await this.#noting(this.#transactions.queryOn(this.#client, begin, [], once))
    const asked = this.#transactions.queryOn<{ pid: number; began: string }>(
      this.#client,
      `select pg_backend_pid() as pid, extract(epoch from now())::text as began,
              set_config('statement_timeout', $1::text, true),
              set_config('idle_in_transaction_session_timeout', $1::text, true)`,
      [String(leftMs)],
      once,
    )
    ;[this.#mark] = await this.#noting(asked)
  }

  call<T>(verb: string, args: string, values: unknown[]): Promise<T> {
    const once = { timeoutMs: this.#timeoutMs }
    return this.#noting(this.#transactions.callOn<T>(this.#client, verb, args, values, once))
  }

  async commit(): Promise<void> {
    const once = { timeoutMs: this.#timeoutMs }
    await this.#noting(this.#transactions.queryOn(this.#client, 'commit', [], once))
  }

  /** The session ended although nobody here cut it. */
  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  /** At an abort: what the handler waits for fails at once, and nothing of it can commit. */
  cut(): void {
    if (this.#isCut || !this.#isOpen) return
    this.#isCut = true
    const { connection } = this.#client as { connection?: { stream?: { destroy?: () => void } } }
    connection?.stream?.destroy?.()
    this.#ended ??= this.#terminate()
  }

  /** Resolves when the server has let go of the job's row: an outcome that came before would wait for it. */
  async rollback(): Promise<void> {
    this.#isOpen = false
    if (!this.#isBroken && !this.#isCut) {
      const once = { timeoutMs: Math.min(ROLLBACK_MS, this.#timeoutMs) }
      try {
        await this.#transactions.queryOn(this.#client, 'rollback', [], once)
      } catch {
        this.#isBroken = true
      }
    }
    this.release()
    await this.#ended
  }

  /** Back to the pool, or, when it is no good any more, away. */
  release(): void {
    this.#isOpen = false
    if (this.#isReleased) return
    this.#isReleased = true
    const isUseless = this.#isBroken || this.#isCut
    if (isUseless) {
      this.#ended ??= this.#terminate()
    } else {
      this.#client.removeListener?.('error', this.#gone)
      this.#client.removeListener?.('end' as 'error', this.#gone)
    }
    this.#client.release(isUseless)
  }

  /**
   * A server that is in the middle of a statement notices a closed socket only at its end, and holds its locks until
   * then: it is told by another way.
   */
  async #terminate(): Promise<void> {
    if (this.#mark === undefined) return
    await this.#beside
      .query(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
          where a.pid = $1::text::integer and extract(epoch from a.xact_start) = $2::text::numeric`,
        [String(this.#mark.pid), this.#mark.began],
        { timeoutMs: this.#timeoutMs },
      )
      .catch(() => {}) // then the timeouts of the transaction end it
  }

  async #noting<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      if (isEndOfSession(error)) this.#isBroken = true
      throw error
    }
  }

  readonly #gone = () => {
    this.#isBroken = true
    if (this.#isOpen && !this.#isCut) this.#onGone?.()
  }
}

/** A server that goes on after an error says so, whatever its code: 08006 may be that of a foreign table. */
function isEndOfSession(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown }
  if (severity === undefined) return isConnectionError(error)
  return severity === 'FATAL' || severity === 'PANIC'
}
