// Brings contenders and servers together: a fresh place for each measurement, children, and what is counted meanwhile.

import { type Child, Missing, startChild } from '../kit/child.ts'
import { type Counted, counting } from '../kit/counted.ts'
import type { Bench, Contender } from '../kit/scenario.ts'
import type { Entry } from './roster.ts'
import type { Place } from './shape.ts'

/** A place that is ready, and how to count what happens there. */
export interface Ready {
  readonly place: Place
  /** A child with the contender's module. It is not connected: that is its `open`. */
  child(): Promise<Child>
  count(): Promise<Count>
}

/** A stretch that is counted. */
export interface Count {
  /** The work is done: CPU and WAL are read now. */
  mark(): Promise<void>
  /** Everything, per job; to be asked when the children have ended. */
  perJob(jobs: number): Promise<Record<string, number>>
}

/** The contenders of one scenario. */
export class Contest {
  readonly missing: string[] = []
  readonly contenders: Contender[] = []
  readonly #bench: Bench

  constructor(bench: Bench) {
    this.#bench = bench
  }

  /** Those of the entries whose package and server are here; the others are said. */
  async present(all: readonly Entry[]): Promise<Entry[]> {
    const there: Entry[] = []
    for (const entry of all) {
      if (this.#bench.among?.includes(entry.name) === false) continue
      try {
        if (entry.on !== 'postgres' && (await this.#redis(entry)) === undefined) {
          this.miss(entry, 'redis-server is not installed here')
          continue
        }
        const child = await startChild(moduleOf(entry))
        const { value } = await child.ask<string>('configuration')
        this.contenders.push({ name: entry.name, configuration: value })
        if (entry.on === 'postgres') await this.#makeTemplate(entry, child)
        await child.end()
        there.push(entry)
      } catch (error) {
        if (!(error instanceof Missing)) throw error
        this.miss(entry, error.message)
      }
    }
    return there
  }

  /** Say that a contender does not take part (any more), and why. */
  miss({ name }: { readonly name: string }, why: unknown): void {
    const line = `${name}: ${String((why as Error)?.message ?? why).split('\n')[0]}`
    this.missing.push(line)
    this.#bench.say(`missing: ${line}`)
  }

  /** A fresh place with the contender's tables in it. */
  async ready(entry: Entry): Promise<Ready> {
    const place = entry.on === 'postgres' ? await this.#database(entry) : await this.#emptied(entry)
    return {
      place,
      child: () => startChild(moduleOf(entry)),
      count: () => (entry.on === 'postgres' ? this.#countPostgres(entry) : this.#countRedis(entry)),
    }
  }

  /** Tables are made once: what is measured begins with the same files. */
  async #makeTemplate(entry: Entry, child: Child): Promise<void> {
    const server = await this.#bench.server()
    await child.ask('prepare', { url: await server.database(templateOf(entry)) })
  }

  async #database(entry: Entry): Promise<Place> {
    const server = await this.#bench.server()
    return { url: await server.database(databaseOf(entry), templateOf(entry)) }
  }

  async #emptied(entry: Entry): Promise<Place> {
    const redis = await this.#redis(entry)
    const place = { url: redis!.url }
    const child = await startChild(moduleOf(entry))
    await child.ask('prepare', place)
    await child.end()
    return place
  }

  #redis(entry: Entry) {
    return this.#bench.redis({ aof: entry.on === 'redis-aof' })
  }

  async #countPostgres(entry: Entry): Promise<Count> {
    const stretch = await counting(await this.#bench.server(), databaseOf(entry))
    return {
      mark: () => stretch.mark(),
      async perJob(jobs) {
        const counted: Counted = await stretch.done()
        return Object.fromEntries(Object.entries(counted).map(([name, n]) => [name, n / jobs]))
      },
    }
  }

  async #countRedis(entry: Entry): Promise<Count> {
    const redis = await this.#redis(entry)
    const before = redis!.cpuUs()
    let after: number | undefined
    return {
      async mark() {
        after = redis!.cpuUs()
      },
      async perJob(jobs) {
        return { redisCpuUs: ((after ?? redis!.cpuUs()) - before) / jobs }
      },
    }
  }
}

const moduleOf = ({ name }: Entry): URL => new URL(`./${name}.ts`, import.meta.url)
const databaseOf = ({ name }: Entry): string => name.replaceAll('-', '_')
const templateOf = (entry: Entry): string => `${databaseOf(entry)}_template`
