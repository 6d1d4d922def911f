// Counts the statements that this process sends to the queue, and strikes at the point it was told. Nothing in Rowlock
// knows of it: it stands between Rowlock and the driver.

import pg from 'pg'
import { labelOf, type Moment, type Order } from './points.ts'
import { strike, strikeDuring } from './strike.ts'

/** How often each name has come up. */
export const counts = new Map<string, number>()

/** A moment of a handler has come. */
export function reached(label: string, order: Order): void {
  const nth = count(label)
  if (order.point?.label === label && order.point.nth === nth) strike(order)
}

function count(label: string): number {
  const nth = (counts.get(label) ?? 0) + 1
  counts.set(label, nth)
  return nth
}

type Query = (this: pg.Client, ...args: unknown[]) => unknown

/** From now on every statement of Rowlock's sessions is counted. */
export function watch(order: Order): void {
  const { point } = order
  const prototype = pg.Client.prototype as unknown as { query: Query }
  const original = prototype.query
  prototype.query = function (...args) {
    const [text] = args
    if (typeof text !== 'string' || !isOurs(this)) return original.apply(this, args)
    const label = labelOf(text)
    const nth = count(label)
    const isIt = (moment: Moment) => point?.label === label && point.nth === nth && point.moment === moment
    const send = () => original.apply(this, args) as Promise<unknown>
    if (isIt('sent')) return strikeDuring(label, order, send)
    if (isIt('before')) strike(order)
    const answer = send()
    return isIt('answered') ? answer.finally(() => strike(order)) : answer
  }
}

function isOurs(client: pg.Client): boolean {
  const { connectionParameters } = client as unknown as {
    connectionParameters: { application_name?: string }
  }
  return /^(rowlock|victim)/.test(connectionParameters.application_name ?? '')
}
