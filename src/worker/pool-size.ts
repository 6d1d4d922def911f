// Looks whether the handlers in transactions can all have a connection at once.

import type { Database } from '../engine/database.ts'
import type { Logger } from './log.ts'
import type { WorkerSettings } from './options.ts'
import { slotsOf } from './sharing.ts'

/** Warn when the pool is smaller than the concurrency of the handlers that take their connections from it. */
export function warnOfSmallPool(
  transactions: Database,
  { queues, sharing, handlers }: WorkerSettings,
  logger: Logger,
): void {
  const transactional = [...handlers.values()].filter((handler) => handler.transactional)
  if (transactional.length === 0) return
  const names = new Set(transactional.map(({ definition }) => definition.queue))
  const own = queues.filter(({ queue }) => names.has(queue))
  const concurrency = slotsOf(own.length > 0 ? own : queues, sharing)
  const max = transactions.maxConnections
  if (max === undefined || max >= concurrency) return
  logger.warn({ max, concurrency }, 'the pool has fewer connections than handlers in transactions: they wait')
}
