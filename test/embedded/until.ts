// Waiting in tests: for a condition, with a bound that says what was waited for.

import { setTimeout as sleep } from 'node:timers/promises'

/** Wait until the condition holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, boundMs = 60_000) {
  const deadline = performance.now() + boundMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${boundMs} ms in vain until ${what}`)
    await sleep(20)
  }
}
