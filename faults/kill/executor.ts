// Counts the statements that this process sends to the queue, and ends it by SIGKILL at the point it was told. Nothing
// in Rowlock knows of it: it stands between Rowlock and the driver.

import pg from 'pg'
import { labelOf, type Moment, type Point } from './points.ts'

/** How often each name has come up. */
export const counts = new Map<string, number>()

/** A moment has come. Ends the process when it is the one. */
export function reached(label: string, point: Point | undefined): void {
  const nth = count(label)
  if (point?.label === label && point.nth === nth) die()
}

function count(label: string): number {
  const nth = (counts.get(label) ?? 0) + 1
  counts.set(label, nth)
  return nth
}

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  // The signal is on its way; nothing more is to happen.
  for (;;);
}

type Query = (this: pg.Client, ...args: unknown[]) => unknown

/** From now on every statement of Rowlock's sessions is counted. */
export function watch(point: Point | undefined): void {
  const prototype = pg.Client.prototype as unknown as { query: Query }
  const original = prototype.query
  prototype.query = function (...args) {
    const [text] = args
    if (typeof text !== 'string' || !isOurs(this)) return original.apply(this, args)
    const label = labelOf(text)
    const nth = count(label)
    const isIt = (moment: Moment) => point?.label === label && point.nth === nth && point.moment === moment
    if (isIt('before')) die()
    const answer = original.apply(this, args)
    // The driver writes at the end of this turn; the answer cannot have been read before the next.
    if (isIt('sent')) setImmediate(die)
    return isIt('answered') ? (answer as Promise<unknown>).then(die, die) : answer
  }
}

function isOurs(client: pg.Client): boolean {
  const { connectionParameters } = client as unknown as {
    connectionParameters: { application_name?: string }
  }
  return /^(rowlock|victim)/.test(connectionParameters.application_name ?? '')
}
