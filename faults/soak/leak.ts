// Handlers that keep what they should not: what a soak must find. One leak for each of the things that are counted.

import { EventEmitter } from 'node:events'
import { createServer } from 'node:net'
import pg from 'pg'
import type { HandlerContext } from '../../src/worker/handler.ts'

/** What can be kept. */
export const LEAKS = ['heap', 'handles', 'listeners', 'connections', 'runs', 'entries'] as const
/** One of them. */
export type Leak = (typeof LEAKS)[number]

/** Ports and sessions are scarce: of so many jobs one leaks such a thing. */
const ONE_IN = 5
const kept: unknown[] = []
const bus = new EventEmitter().setMaxListeners(0)
const seen = new Map<string, number>()

/** To be called by each handler. */
export function leaking(leaks: readonly Leak[], url: string): (context: HandlerContext) => void {
  let calls = 0
  const own: Readonly<Record<Leak, (context: HandlerContext) => void>> = {
    heap: () => void kept.push('x'.repeat(100).split('')),
    handles: () => calls % ONE_IN === 0 && void createServer().listen(0, '127.0.0.1'),
    listeners: () => void bus.on('end', () => {}),
    connections() {
      if (calls % ONE_IN !== 0) return
      const client = new pg.Client({ connectionString: url, application_name: 'rowlock leak' })
      client.on('error', () => {})
      client.connect().catch(() => {})
    },
    // The context reads its job and its signal from its run.
    runs: (context) => void kept.push(context),
    entries: ({ job }) => void seen.set(job.id, job.attempt),
  }
  return (context) => {
    calls++
    for (const leak of leaks) own[leak](context)
  }
}
