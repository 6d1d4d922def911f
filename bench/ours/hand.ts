// A worker by hand: claims and finishes by the SQL verbs over one connection, and tells what a claim costs.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { clientOf } from '../kit/counted.ts'
import { median } from '../kit/rounds.ts'

/** What a claim is asked for, as `rowlock.claim` takes it. */
export interface Wanted {
  readonly queue?: string
  readonly limit?: number
  readonly kinds?: readonly string[]
}

/** A claimed job, as far as a hand needs it to end it. */
export interface Taken {
  readonly id: string
  readonly claim_id: string
}

interface Reply {
  readonly jobs: readonly (readonly [id: string, ...rest: unknown[]])[]
  readonly alike: readonly { readonly ids: string }[]
  readonly claim_id: string
}

/** What one statement cost, those inside of it included. */
export interface Cost {
  readonly buffers: number
  readonly walBytes: number
  /** Without the commit and the way to the client. */
  readonly ms: number
}

/** A registered worker without a process. */
export class Hand {
  readonly client: pg.Client
  readonly id = randomUUID()

  private constructor(client: pg.Client) {
    this.client = client
  }

  /** Connect and register, with a lease that outlives the bench. */
  static async on(url: string): Promise<Hand> {
    const hand = new Hand(await clientOf(url))
    await hand.client.query(`select rowlock.register($1, interval '1 hour', '{"name": "by hand"}')`, [
      hand.id,
    ])
    return hand
  }

  /** Claim from one queue. */
  async claim(wanted: Wanted = {}): Promise<Taken[]> {
    const { rows } = await this.client.query({
      name: 'claim',
      text: 'select rowlock.claim($1, $2) as reply',
      values: [this.id, wants(wanted)],
    })
    const { jobs, alike, claim_id } = rows[0].reply as Reply
    // Jobs that are alike come together: their ids are an SQL array as text.
    const together = alike.flatMap(({ ids }) => ids.slice(1, -1).split(','))
    return [...jobs.map(([id]) => id), ...together].map((id) => ({ id, claim_id }))
  }

  /** Complete what was claimed. */
  async complete(jobs: readonly Taken[]): Promise<void> {
    const pairs = [...jobs].sort((a, b) => Number(a.id) - Number(b.id)).map((job) => ({ ...job, ran_ms: 1 }))
    await this.#finish({ complete: pairs })
  }

  /** Report a failure of one job; it is due again at once. */
  async fail(job: Taken): Promise<void> {
    await this.#finish({
      fail: [{ ...job, outcome: 'failed', cause: 'Error', error: { message: 'on purpose' }, after_ms: 0 }],
    })
  }

  async #finish(outcomes: unknown): Promise<void> {
    await this.client.query({
      name: 'finish',
      text: 'select rowlock.finish($1)',
      values: [JSON.stringify(outcomes)],
    })
  }

  /** What a claim reads and writes, by EXPLAIN; nothing stays changed. The first one of a session fills its caches. */
  async costOfClaim(wanted: Wanted = {}, times = 1): Promise<Cost> {
    await this.#explain(wanted)
    const costs: Cost[] = []
    for (let n = 0; n < times; n++) costs.push(await this.#explain(wanted))
    return {
      buffers: median(costs.map(({ buffers }) => buffers)),
      walBytes: median(costs.map(({ walBytes }) => walBytes)),
      ms: median(costs.map(({ ms }) => ms)),
    }
  }

  async #explain(wanted: Wanted): Promise<Cost> {
    await this.client.query('begin')
    const { rows } = await this.client.query(
      'explain (analyze, timing off, buffers, wal, format json) select rowlock.claim($1, $2)',
      [this.id, wants(wanted)],
    )
    await this.client.query('rollback')
    const [{ Plan, 'Execution Time': ms }] = rows[0]['QUERY PLAN']
    return {
      buffers: Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'],
      walBytes: Plan['WAL Bytes'],
      ms,
    }
  }

  /** End the session. */
  async end(): Promise<void> {
    await this.client.end()
  }
}

function wants({ queue = 'default', limit = 10, kinds = ['k'] }: Wanted): string {
  return JSON.stringify([{ queue, limit, kinds, alike: true }])
}
