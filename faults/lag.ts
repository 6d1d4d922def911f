// How much of its time a machine withheld: the delays of a timer in this process, added up. What is late by more than
// that was late by itself.

const TICK_MS = 20

/** A running measurement. */
export interface Lag {
  /** By how much its ticks were late, in all. Unit: ms. */
  stop(): number
}

/** Begin to measure. */
export function startLag(): Lag {
  let total = 0
  let due = performance.now() + TICK_MS
  const timer = setInterval(note, TICK_MS)
  function note(): void {
    const now = performance.now()
    // A millisecond is what timers are off by themselves.
    total += Math.max(0, now - due - 1)
    due = now + TICK_MS
  }
  return {
    stop() {
      clearInterval(timer)
      note()
      return total
    },
  }
}
