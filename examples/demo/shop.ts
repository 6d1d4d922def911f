// The shop: takes orders, and enqueues what follows from each in the order's own transaction. It keeps a list of what
// was acknowledged to it and of what it took back; the account is measured by these lists.

import type pg from 'pg'
import type { AnyRequest, Rowlock } from 'rowlock'
import type { Event } from './events.ts'
import { bookInvoice, resizePicture, sendEmail, syncRecord } from './jobs.ts'

/** A job whose enqueue was acknowledged: its transaction is committed. */
export interface Acknowledged {
  readonly id: string
  readonly kind: string
  readonly reference: string
}

/** A job that was enqueued in a transaction which was rolled back: nothing of it may ever be seen. */
export type TakenBack = Omit<Acknowledged, 'id'>

export const SHOP_TABLES = `
create schema shop;
create table shop.orders (
  reference text primary key,
  customer text not null,
  cents integer not null,
  placed_at timestamptz not null default now()
);
create table shop.ledger (
  reference text not null,
  idempotency_key text not null,
  cents integer not null,
  booked_at timestamptz not null default now()
);`

/** Each nth order is taken back before it is committed: the card was refused. */
const REFUSED_EVERY = 12

export class Shop {
  readonly acknowledged: Acknowledged[] = []
  readonly takenBack: TakenBack[] = []
  readonly #pool: pg.Pool
  readonly #rowlock: Rowlock
  readonly #events: readonly Event[]
  readonly #pictures: readonly string[]
  #placed = 0

  constructor(pool: pg.Pool, rowlock: Rowlock, events: readonly Event[], pictures: readonly string[]) {
    this.#pool = pool
    this.#rowlock = rowlock
    this.#events = events
    this.#pictures = pictures
  }

  get placed(): number {
    return this.#placed
  }

  /** The next order; now and then one that is taken back comes before it. */
  async placeNext(): Promise<void> {
    const n = this.#placed++
    if (n % REFUSED_EVERY === REFUSED_EVERY - 1) await this.#place(n, `refused-${n}`, false)
    await this.#place(n, `order-${n}`, true)
  }

  /** Jobs that belong to no order. */
  async enqueue(request: AnyRequest): Promise<Acknowledged> {
    const { definition, input, options } = request
    const { id } = await this.#rowlock.enqueue(definition, input, options)
    return this.acknowledge({ id, kind: definition.kind, reference: input.reference })
  }

  acknowledge(job: Acknowledged): Acknowledged {
    this.acknowledged.push(job)
    return job
  }

  async #place(n: number, reference: string, isPaid: boolean): Promise<void> {
    const cents = 100 + ((n * 7919) % 90_000)
    const requests = this.#requestsFor(n, reference, cents)
    const client = await this.#pool.connect()
    try {
      await client.query('begin')
      await client.query('insert into shop.orders (reference, customer, cents) values ($1, $2, $3)', [
        reference,
        customer(n),
        cents,
      ])
      const enqueued = await this.#rowlock.in(client).enqueueMany(requests)
      await client.query(isPaid ? 'commit' : 'rollback')
      for (const [index, { definition, input }] of requests.entries()) {
        const job = { kind: definition.kind, reference: input.reference as string }
        if (isPaid) this.acknowledge({ id: enqueued[index]!.id, ...job })
        else this.takenBack.push(job)
      }
      client.release()
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  #requestsFor(n: number, reference: string, cents: number): AnyRequest[] {
    const { event, payload } = this.#events[n % this.#events.length]!
    const requests: AnyRequest[] = [syncRecord.with({ reference, event, payload }, { tenantId: customer(n) })]
    if (n % 3 === 0) requests.push(sendEmail.with({ reference, to: customer(n) }))
    if (n % 4 === 3) requests.push(bookInvoice.with({ reference, cents }))
    if (n % 6 === 5) {
      const picture = this.#pictures[n % this.#pictures.length]!
      requests.push(resizePicture.with({ reference, picture, width: 320 + (n % 4) * 80 }))
    }
    return requests
  }
}

const customer = (n: number) => `customer-${n % 23}@customer.example`
