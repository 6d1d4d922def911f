// The measure of what a machine withheld: it sees a process that was held up, also where no tick came since.

import { expect, test } from 'vitest'
import { startLag } from '../../faults/lag.ts'

const HELD_UP_MS = 200
const TICK_MS = 20

function holdUp(): void {
  const end = performance.now() + HELD_UP_MS
  while (performance.now() < end);
}

test('a process that was held up knows by how much', async () => {
  const lag = startLag()
  holdUp()
  await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  holdUp()
  expect(lag.stop()).toBeGreaterThanOrEqual(2 * (HELD_UP_MS - TICK_MS - 1))
})
