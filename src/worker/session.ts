// The connection of one handler's transaction: begun, cut, ended, and given back in the state it deserves.

import type { Database } from '../engine/database.ts'
import type { PooledClient, Queryable } from '../engine/seam.ts'
import { isConnectionError } from '../engine/translate.ts'
import { RowlockError } from '../ground/errors.ts'

/** One connection with one transaction, for one handler. */
export class Session {
  readonly #client: PooledClient
  readonly #transactions: Database
  /** Another way to the server, for what cannot be said on the session itself. */
  readonly #beside: Database
  readonly #timeoutMs: number
  #isOpen = true
  #isCut = false
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
      return this.#client.query(text, values)
    },
  }

  /** The server ends by itself what outlives this. */
  async begin(leftMs: number): Promise<void> {
    const once = { timeoutMs: this.#timeoutMs }
    await this.#transactions.queryOn(
      this.#client,
      'begin isolation level read committed read write',
      [],
      once,
    )
    const [mark] = await this.#transactions.queryOn<{ pid: number; began: string }>(
      this.#client,
      `select pg_backend_pid() as pid, extract(epoch from now())::text as began,
              set_config('statement_timeout', $1::text, true),
              set_config('idle_in_transaction_session_timeout', $1::text, true)`,
      [String(leftMs)],
      once,
    )
    this.#mark = mark
  }

  call<T>(verb: string, args: string, values: unknown[]): Promise<T> {
    return this.#transactions.callOn<T>(this.#client, verb, args, values, { timeoutMs: this.#timeoutMs })
  }

  async commit(): Promise<void> {
    await this.#transactions.queryOn(this.#client, 'commit', [], { timeoutMs: this.#timeoutMs })
  }

  /** The session ended although nobody here cut it. */
  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  /**
   * At an abort: what the handler waits for fails at once, and nothing of it can commit. A server that is in the middle
   * of a statement notices a closed socket only at its end, and holds its locks until then: it is told by another way.
   */
  cut(): void {
    if (this.#isCut || !this.#isOpen) return
    this.#isCut = true
    const { connection } = this.#client as { connection?: { stream?: { destroy?: () => void } } }
    connection?.stream?.destroy?.()
    if (this.#mark === undefined) return
    this.#ended = this.#beside
      .query(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
          where a.pid = $1::text::integer and extract(epoch from a.xact_start) = $2::text::numeric`,
        [String(this.#mark.pid), this.#mark.began],
        { timeoutMs: this.#timeoutMs },
      )
      .catch(() => {}) // then the timeouts of the transaction end it
  }

  async rollback(isBroken = false): Promise<void> {
    this.#isOpen = false
    if (!isBroken && !this.#isCut) {
      try {
        await this.#transactions.queryOn(this.#client, 'rollback', [], { timeoutMs: this.#timeoutMs })
        return this.release()
      } catch (error) {
        isBroken = isConnectionError(error)
      }
    }
    this.release(true)
    // The job's row is locked until the server has let go: an outcome that came before would wait for it.
    await this.#ended
  }

  release(isBroken = false): void {
    this.#isOpen = false
    if (this.#isReleased) return
    this.#isReleased = true
    if (!isBroken && !this.#isCut) {
      this.#client.removeListener?.('error', this.#gone)
      this.#client.removeListener?.('end' as 'error', this.#gone)
    }
    this.#client.release(isBroken || this.#isCut)
  }

  readonly #gone = () => {
    if (this.#isOpen && !this.#isCut) this.#onGone?.()
  }
}
