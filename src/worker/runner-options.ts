// What running a job takes from the worker around it.

import type { Database } from '../engine/database.ts'
import type { Outcome } from '../engine/finish.ts'
import type { Logger } from './log.ts'
import type { HandlerMiddleware } from './middleware.ts'

export interface RunnerOptions {
  /** For short statements of the worker itself. */
  readonly database: Database
  /** For the transactions of handlers. */
  readonly transactions: Database
  readonly timeoutMs: number
  readonly middleware: readonly HandlerMiddleware[]
  readonly logger: Logger
  /** The installation, part of idempotency keys. */
  readonly installation: () => string
  /** An outcome was committed in its handler's own transaction; `to` is the state its job went to. */
  readonly onCommitted: (outcome: Outcome, to: string) => void
}
