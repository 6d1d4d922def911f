// The other sides of the recipes: each does what it is asked and can lose its answer afterwards.

import { fixed } from 'rowlock'

export const now = fixed(0)

const crashed = new Set<string>()

/** The process dies here, once. */
export function crashOnce(where: string): void {
  if (crashed.has(where)) return
  crashed.add(where)
  throw new Error(`crashed ${where}`)
}

/** A line on which an answer can get lost after the work was done. */
class Line {
  #loses = false

  loseTheNextAnswer(): void {
    this.#loses = true
  }

  protected answer<T>(value: T): T {
    if (!this.#loses) return value
    this.#loses = false
    throw new Error('socket hang up')
  }
}

interface Charge {
  readonly id: string
  readonly cents: number
}

class Payments extends Line {
  readonly charges: Charge[] = []
  readonly #byKey = new Map<string, Charge>()

  async charge(body: { order: string; cents: number }, options: { key: string; signal: AbortSignal }) {
    const known = this.#byKey.get(options.key)
    if (known !== undefined) return this.answer(known)
    const made = { id: `ch_${this.charges.length + 1}`, cents: body.cents }
    this.charges.push(made)
    this.#byKey.set(options.key, made)
    return this.answer(made)
  }
}

class Courier extends Line {
  readonly parcels: { readonly id: string; readonly reference: string }[] = []

  async find(reference: string) {
    return this.parcels.find((parcel) => parcel.reference === reference)
  }

  async create({ reference }: { reference: string }) {
    const made = { id: `parcel ${this.parcels.length + 1}`, reference }
    this.parcels.push(made)
    return this.answer(made)
  }
}

interface Transfer {
  readonly reference: string
  readonly iban: string
  readonly cents: number
}

class Bank extends Line {
  readonly transfers: (Transfer & { readonly id: string })[] = []
  #closed = false

  async transfer(transfer: Transfer) {
    const made = { ...transfer, id: `bank ${this.transfers.length + 1}` }
    this.transfers.push(made)
    return this.answer(made)
  }

  async find(reference: string) {
    if (!this.#closed) return 'too early to say' as const
    return this.transfers.find((transfer) => transfer.reference === reference) ?? ('none' as const)
  }

  closeTheBooks(): void {
    this.#closed = true
  }

  async *statement(_day: string) {
    yield { reference: 'T-1', cents: 5000 }
    yield { reference: 'T-2', cents: 70 }
  }
}

export const payments = new Payments()
export const courier = new Courier()
export const bank = new Bank()
