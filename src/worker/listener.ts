// Listens on one session of its own, and proves that it hears: a notice sent on another must come to it while it is
// idle.
// Behind a transaction pooler none does, and the worker polls instead.

import { randomBytes } from 'node:crypto'
import type { Database } from '../engine/database.ts'
import { quoteIdentifier } from '../engine/schema.ts'
import type { PooledClient } from '../engine/seam.ts'
import { Loop } from './loop.ts'

export interface ListenerOptions {
  readonly database: Database
  /** Sends the notices by which it proves that it hears. */
  readonly notifier: Database
  readonly onQueue: (queue: string) => void
  readonly onCancel: (workerId: string) => void
  /** Settings of this queue were changed. */
  readonly onSettings: (queue: string) => void
  /** Hearing began, or ended. */
  readonly onChange: (proven: boolean) => void
  readonly onError: (error: unknown) => void
}

const PROBE_MS = 2_000
const PROVE_EVERY_MS = 30_000
/** Not heard, though connected. It may have been a slow moment; each time in a row makes that less likely. */
const AGAIN_MS = 1_000
const AGAIN_FACTOR = 4
/** A pooler does not change by the second. */
const DEAF_EVERY_MS = 60_000

/** The loop that keeps one session listening and proves again and again that it hears. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #loop: Loop
  #client: PooledClient | undefined
  #channel: string | undefined
  /** Undefined until it has been tried. */
  #proven: boolean | undefined
  /** Rounds in a row in which nothing was heard. */
  #deafRounds = 0
  #probe: { readonly nonce: string; readonly heard: () => void } | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#loop = new Loop({
      run: () => this.#round(),
      everyMs: PROVE_EVERY_MS,
      errorMaxMs: 15_000,
      onError: options.onError,
    })
  }

  /** A notice was heard on this session, and nothing has gone wrong since. */
  get isProven(): boolean {
    return this.#proven === true
  }

  start(): void {
    this.#loop.start()
  }

  runOnce(): Promise<number | undefined> {
    return this.#loop.runOnce()
  }

  async stop(): Promise<void> {
    const stopped = this.#loop.stop()
    this.#probe?.heard()
    this.#drop()
    await stopped
    this.#drop()
  }

  async #round(): Promise<number | undefined> {
    try {
      this.#client ??= await this.#connect()
      const heard = await this.#prove()
      if (!heard) {
        // The next round makes a new session: this one may be dead without a word.
        await this.#unlisten(this.#client)
        this.#drop()
        this.#set(false)
        return Math.min(DEAF_EVERY_MS, AGAIN_MS * AGAIN_FACTOR ** this.#deafRounds++)
      }
      this.#deafRounds = 0
      this.#set(true)
      return PROVE_EVERY_MS
    } catch (error) {
      this.#drop()
      throw error
    }
  }

  async #connect(): Promise<PooledClient> {
    const { database } = this.#options
    this.#channel = await database.call<string>('channel', '', [], { timeoutMs: 5_000 })
    const client = await database.connect()
    client.on?.('error', (error: unknown) => this.#lost(client, error))
    client.on?.('end' as 'error', () => this.#lost(client, new Error('the listening session ended')))
    client.on?.('notification', (message: { payload?: string }) => this.#hear(message.payload ?? ''))
    try {
      await database.queryOn(client, `listen ${quoteIdentifier(this.#channel)}`, [], { timeoutMs: 5_000 })
    } catch (error) {
      cut(client)
      throw error
    }
    return client
  }

  /**
   * A notice from another session. Sent on the listening one it would prove nothing: a pooler that has lent it the same
   * server connection twice brings it back with the statement's own answer, and then never another.
   */
  async #prove(): Promise<boolean> {
    const nonce = randomBytes(8).toString('hex')
    let timer: NodeJS.Timeout | undefined
    const heard = new Promise<boolean>((resolve) => {
      this.#probe = { nonce, heard: () => resolve(true) }
      timer = setTimeout(() => resolve(false), PROBE_MS)
    })
    try {
      const sql = 'select pg_notify($1, $2)'
      await this.#options.notifier.query(sql, [this.#channel, `probe ${nonce}`], { timeoutMs: 5_000 })
      return await heard
    } finally {
      clearTimeout(timer)
      this.#probe = undefined
    }
  }

  /** Leave a pooler's server connection as it was, if it is still the one that was lent. */
  async #unlisten(client: PooledClient): Promise<void> {
    await this.#options.database
      .queryOn(client, `unlisten ${quoteIdentifier(this.#channel!)}`, [], { timeoutMs: 1_000 })
      .catch(() => {})
  }

  #hear(payload: string): void {
    const space = payload.indexOf(' ')
    const word = payload.slice(0, space)
    const rest = payload.slice(space + 1)
    if (word === 'queue') this.#options.onQueue(rest)
    else if (word === 'cancel') this.#options.onCancel(rest)
    else if (word === 'settings') this.#options.onSettings(rest)
    else if (word === 'probe' && rest === this.#probe?.nonce) this.#probe.heard()
  }

  #lost(client: PooledClient, error: unknown): void {
    if (client !== this.#client) return
    this.#drop()
    this.#options.onError(error)
    this.#loop.nudge()
  }

  #drop(): void {
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) cut(client)
    if (this.#proven) this.#set(false)
  }

  #set(proven: boolean): void {
    if (proven === this.#proven) return
    this.#proven = proven
    this.#options.onChange(proven)
  }
}

/** A link that is dead would not answer a goodbye, and its socket would stay. */
function cut(client: PooledClient): void {
  const { connection } = client as { connection?: { stream?: { destroy?: () => void } } }
  connection?.stream?.destroy?.()
  client.release(true)
}
