// What ended in the last minute, queue by queue: so much of the past a worker keeps, for people who look at rates.
// By its own clock, for nothing hangs on it.

import type { Outcome } from '../engine/finish.ts'

/** What ended in the last minute. */
export interface Rate {
  readonly done: number
  /** Attempts that failed, whatever became of their jobs. */
  readonly failed: number
  /** Of these, those whose jobs are tried again. */
  readonly retried: number
}

const BUCKETS = 6
const BUCKET_MS = 10_000
const [DONE, FAILED, RETRIED] = [0, 1, 2]
const WORDS = 3

/** One row of figures for each ten seconds, one more than a minute has: the eldest counts by what is left of it. */
interface Window {
  readonly figures: Uint32Array
  /** Ten seconds of the clock that the newest row stands for. */
  turn: number
}

/** Counts ends in a window that slides. One counter an end, some 80 bytes a queue. */
export class Rates {
  readonly #windows = new Map<string, Window>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** An outcome was written; `to` is the state that its job went to. What is neither good nor bad does not count. */
  note({ verb, queue }: Pick<Outcome, 'verb' | 'queue'>, to: string): void {
    if (queue === undefined || to === 'cancelled') return
    if (verb === 'complete') this.#count(queue, DONE)
    if (verb !== 'fail') return
    this.#count(queue, FAILED)
    if (to === 'retryable') this.#count(queue, RETRIED)
  }

  /** What ended in a queue within the last minute. */
  of(queue: string): Rate {
    const window = this.#windows.get(queue)
    if (window === undefined) return { done: 0, failed: 0, retried: 0 }
    const nowMs = this.#nowMs()
    turnTo(window, Math.floor(nowMs / BUCKET_MS))
    const eldest = 1 - (nowMs % BUCKET_MS) / BUCKET_MS
    const sum = (word: number) => {
      let whole = 0
      for (let n = 0; n < BUCKETS; n++) whole += window.figures[rowOf(window.turn - n) + word]!
      return Math.round(whole + window.figures[rowOf(window.turn - BUCKETS) + word]! * eldest)
    }
    return { done: sum(DONE), failed: sum(FAILED), retried: sum(RETRIED) }
  }

  #count(queue: string, word: number): void {
    const turn = Math.floor(this.#nowMs() / BUCKET_MS)
    let window = this.#windows.get(queue)
    if (window === undefined) {
      window = { figures: new Uint32Array((BUCKETS + 1) * WORDS), turn }
      this.#windows.set(queue, window)
    }
    turnTo(window, turn)
    window.figures[rowOf(turn) + word]!++
  }
}

const rowOf = (turn: number): number => (((turn % (BUCKETS + 1)) + BUCKETS + 1) % (BUCKETS + 1)) * WORDS

/** Forget the rows that time has passed over. */
function turnTo(window: Window, turn: number): void {
  for (let n = Math.max(window.turn + 1, turn - BUCKETS); n <= turn; n++) {
    window.figures.fill(0, rowOf(n), rowOf(n) + WORDS)
  }
  window.turn = Math.max(window.turn, turn)
}
