// A receiver's book: what it has taken on, under which idempotency key, and how often it was told the same again.

/** A receiver's entry about one delivery: taken on, or known already. */
export type Entry = 'taken' | 'repeated'

export class Book {
  readonly #referenceByKey = new Map<string, string>()
  readonly #effects = new Map<string, number>()
  readonly #deliveries = new Map<string, number>()
  #repeated = 0

  /** Count a delivery that arrived, whatever becomes of it; answers which one of its key it is. */
  arrive(key: string): number {
    const delivery = (this.#deliveries.get(key) ?? 0) + 1
    this.#deliveries.set(key, delivery)
    return delivery
  }

  /** Take it to the book, once for each key. */
  take(key: string, reference: string): Entry {
    if (this.#referenceByKey.has(key)) {
      this.#repeated++
      return 'repeated'
    }
    this.#referenceByKey.set(key, reference)
    this.#effects.set(reference, (this.#effects.get(reference) ?? 0) + 1)
    return 'taken'
  }

  /** What the key stands for, if it is known. */
  referenceOf(key: string): string | undefined {
    return this.#referenceByKey.get(key)
  }

  /** How often each reference took effect. Two keys for one reference are two effects. */
  get effects(): ReadonlyMap<string, number> {
    return this.#effects
  }

  /** Deliveries of something that was on the book already. */
  get repeated(): number {
    return this.#repeated
  }

  get size(): number {
    return this.#referenceByKey.size
  }
}
