// Which queue gets the next free slot, where queues share slots: by precedence, or in weighted turns. It decides what a
// claim asks for; it counts no handlers and makes no claims.

/** A queue that could take jobs now. */
export interface Hungry {
  readonly queue: string
  /** What its own concurrency leaves it. */
  readonly limit: number
}

/** What a claim asks of one queue: visited by `turn`, while the whole claim has fewer jobs than `upto`. */
export interface Turn extends Hungry {
  readonly turn: number
  readonly upto: number
}

export interface Turns {
  /** Share so many free slots. A claim that asks for this and comes back empty has looked into every hungry queue. */
  share(hungry: readonly Hungry[], free: number): Turn[]
  /** What the claim found, by queue. */
  note(asked: readonly Turn[], found: Readonly<Record<string, number>>): void
}

/** Each queue in its place: nothing of a later one is claimed while an earlier one has a due job and room. */
export class StrictTurns implements Turns {
  readonly #precedence: readonly string[]

  constructor(precedence: readonly string[]) {
    this.#precedence = precedence
  }

  share(hungry: readonly Hungry[], free: number): Turn[] {
    return hungry.map((one) => ({ ...one, turn: this.#precedence.indexOf(one.queue), upto: free }))
  }

  note(): void {}
}

interface Share {
  readonly weight: number
  /** Starts so far, each divided by the weight; counted from the least of those that have work. */
  used: number
  /** It was asked for more than it had. */
  isIdle: boolean
}

/**
 * Turns by weight: of two queues with work the one that used less of its share is next, so that starts stand in the
 * proportion of the weights. What a queue without work leaves is the others'; it saves nothing up for later.
 *
 * Source: start-time fair queueing (Goyal, Vin, Cheng 1997), with one unit of work a job.
 */
export class WeightedTurns implements Turns {
  readonly #shares: ReadonlyMap<string, Share>

  constructor(weights: ReadonlyMap<string, number>) {
    this.#shares = new Map([...weights].map(([queue, weight]) => [queue, { weight, used: 0, isIdle: false }]))
  }

  share(hungry: readonly Hungry[], free: number): Turn[] {
    const turns = hungry.map((one) => ({ ...one, ...this.#shares.get(one.queue)!, quota: 0 }))
    for (let left = free; left > 0; left--) {
      let next: (typeof turns)[number] | undefined
      for (const turn of turns) {
        if (turn.quota < turn.limit && (next === undefined || turn.used < next.used)) next = turn
      }
      if (next === undefined) break
      next.quota++
      next.used += 1 / next.weight
    }
    // Those that had nothing go first: what they do not take is left to those behind them. Those that have no turn now
    // go last, where all that is left is theirs.
    const usedOf = ({ queue }: Hungry) => this.#shares.get(queue)!.used
    const place = ({ quota, isIdle }: (typeof turns)[number]) => (quota === 0 ? 2 : isIdle ? 0 : 1)
    turns.sort((a, b) => place(a) - place(b) || usedOf(a) - usedOf(b))
    let upto = 0
    return turns.map(({ queue, limit, quota }, turn) => {
      upto += quota
      return { queue, limit, turn, upto }
    })
  }

  note(asked: readonly Turn[], found: Readonly<Record<string, number>>): void {
    let taken = 0
    // Who had no work, or no room, begins again where the others are. Not who was not looked into: its turn comes.
    const anew = new Map(this.#shares)
    for (const { queue, limit, upto } of [...asked].sort((a, b) => a.turn - b.turn)) {
      const share = this.#shares.get(queue)!
      const could = Math.min(limit, upto - taken)
      const got = found[queue] ?? 0
      if (could > 0) {
        taken += got
        share.used += got / share.weight
        share.isIdle = got < could
      }
      if (could <= 0 || !share.isIdle) anew.delete(queue)
    }
    const busy = asked.map(({ queue }) => this.#shares.get(queue)!).filter(({ isIdle }) => !isIdle)
    if (busy.length === 0) {
      for (const share of this.#shares.values()) share.used = 0
      return
    }
    const least = Math.min(...busy.map(({ used }) => used))
    for (const [queue, share] of this.#shares) {
      share.used = anew.has(queue) ? Math.max(0, share.used - least) : share.used - least
    }
  }
}
