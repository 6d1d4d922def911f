// Handlers that keep what they should not: what a soak must find. One leak for each of the things that are counted.

import { EventEmitter } from 'node:events'
import { createServer } from 'node:net'
import pg from 'pg'
import type { HandlerContext } from '../../src/worker/handler.ts'

/** What can be kept. */
export const LEAKS = ['heap', 'handles', 'listeners', 'connections', 'runs', 'entries'] as const
/** One of them. */
export type Leak = (typeof LEAKS)[number]

/** Ports and sessions are scarce: such a thing is kept so often at most. */
const EVERY_MS = 300
const kept: unknown[] = []
const bus = new EventEmitter().setMaxListeners(0)
const seen = new Map<string, number>()

/** To be called by each handler. */
export function leaking(leaks: readonly Leak[], url: string): (context: HandlerContext) => void {
  const lastAt = { handles: 0, connections: 0 }
  const isTime = (what: keyof typeof lastAt) => {
    const now = performance.now()
    if (now < lastAt[what] + EVERY_MS) return false
    lastAt[what] = now
    return true
  }
  const own: Readonly<Record<Leak, (context: HandlerContext) => void>> = {
    heap: () => void kept.push('x'.repeat(100).split('')),
    handles: () => isTime('handles') && void createServer().listen(0, '127.0.0.1'),
    listeners: () => void bus.on('end', () => {}),
    connections() {
      if (!isTime('connections')) return
      const client = new pg.Client({ connectionString: url, application_name: 'rowlock leak' })
      client.on('error', () => {})
      client.connect().catch(() => {})
    },
    // The context reads its job and its signal from its run.
    runs: (context) => void kept.push(context),
    entries: ({ job }) => void seen.set(job.id, job.attempt),
  }
  return (context) => {
    for (const leak of leaks) own[leak](context)
  }
}
