// A client of `pg` that may connect to one of several hosts: the first that lets it in and is what was asked for.

import { EventEmitter } from 'node:events'
import type net from 'node:net'
import pg from 'pg'
import { type Hosts, hostsOf, type Target } from './hosts.ts'
import { messageOf, notLetIn } from './translate.ts'

/** What a pool is told so that its connections lead where the address says. Errors: INVALID_OPTION. */
export function reaching(connectionString: string, path?: string): pg.PoolConfig {
  const hosts = hostsOf(connectionString, path)
  if (hosts === undefined) return { connectionString }
  return { connectionString, Client: clientOf(hosts) as new () => pg.Client }
}

interface Inner {
  readonly connection: EventEmitter & { readonly stream: net.Socket }
}

/** Fields that are the listeners' and not the client's. */
const LISTENERS = new Set(Reflect.ownKeys(new EventEmitter()))
/** Of the time to connect: the rest is for what happens between two hosts. */
const SHARED = 0.9
const ASK =
  "select pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'on' as \"readOnly\""

/** The hosts share what is known of them: each client begins with the one that was taken last. */
function clientOf(hosts: Hosts): new (config?: pg.ClientConfig) => pg.Client {
  const { targets, wanted } = hosts
  const at = (config: pg.ClientConfig, { connectionString }: Target) => ({ ...config, connectionString })

  return class HostsClient extends pg.Client {
    readonly #config: pg.ClientConfig

    constructor(config: pg.ClientConfig = {}) {
      super(at(config, targets[0]!))
      this.#config = config
    }

    // biome-ignore lint/suspicious/noExplicitAny: both forms of pg, by callback and by promise
    override connect(callback?: (...args: any[]) => void): any {
      const seeking = this.#seek()
      if (callback === undefined) return seeking
      seeking.then(() => callback(null, this), callback)
    }

    async #seek(): Promise<this> {
      const ms = this.#config.connectionTimeoutMillis ?? 0
      const deadline = ms === 0 ? Number.POSITIVE_INFINITY : performance.now() + ms
      const failures: Error[] = []
      const said: string[] = []
      // What breaks here is the attempt's, and nobody else listens yet.
      const ignore = () => {}
      this.on('error', ignore)
      try {
        for (let n = 0, first = hosts.last; n < targets.length && performance.now() < deadline; n++) {
          const which = (first + n) % targets.length
          const target = targets[which]!
          try {
            await this.#attempt(target, (ms * SHARED) / targets.length)
            hosts.last = which
            return this
          } catch (error) {
            this.#drop()
            failures.push(error as Error)
            said.push(`${target.name}: ${messageOf(error)}`)
          }
        }
      } finally {
        this.removeListener('error', ignore)
      }
      const who = targets.length === 1 ? 'the host is not' : `none of the ${targets.length} hosts is`
      // Nobody is let in anywhere: that is for a person to mend. Else a later attempt may find another state.
      const cause = failures.every((error) => notLetIn(error)) ? failures[0] : undefined
      throw new AggregateError(failures, `${who} fit (${said.join('; ')})`, { cause })
    }

    async #attempt(target: Target, ms: number): Promise<void> {
      this.#renew(new pg.Client({ ...at(this.#config, target), connectionTimeoutMillis: 0 }))
      const { stream } = (this as unknown as Inner).connection
      const late = () => stream.destroy(new Error(`no answer within ${Math.round(ms)} ms`))
      const timer = ms > 0 ? setTimeout(late, ms) : undefined
      try {
        await super.connect()
        if (wanted === 'any') return
        const { rows } = await this.query<{ standby: boolean; readOnly: boolean }>(ASK)
        const [is] = rows
        if (is?.standby) throw new Error('it is a standby')
        if (is?.readOnly && wanted === 'read-write') throw new Error('it is set to read only')
      } finally {
        clearTimeout(timer)
      }
    }

    /** Be as new: a client of pg connects once, so all that makes one up is taken from another. */
    #renew(fresh: pg.Client): void {
      this.#drop()
      for (const key of Reflect.ownKeys(fresh)) {
        if (LISTENERS.has(key)) continue
        Object.defineProperty(this, key, Object.getOwnPropertyDescriptor(fresh, key)!)
      }
    }

    /** Let go of the connection: nothing that it still says is heard. */
    #drop(): void {
      const { connection } = this as unknown as Inner
      connection.removeAllListeners()
      connection.on('error', () => {})
      connection.stream.destroy()
    }
  }
}
