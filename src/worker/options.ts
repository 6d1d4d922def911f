// What can be asked of a worker, checked early, with every default filled in.

import os from 'node:os'
import { type Duration, durationMs } from '../ground/duration.ts'
import { RowlockError } from '../ground/errors.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { checkQueue } from '../ground/names.ts'
import { checkOptions } from '../ground/nearest.ts'
import type { StopOptions } from './events.ts'
import { type Handler, handlersByKind } from './handler.ts'
import { type Logger, stderrLogger } from './log.ts'
import { type Sharing, sharingOf } from './sharing.ts'

/** How a worker serves one queue. */
export interface QueueOptions {
  /** Handlers of this queue that run at once in this process. Unit: default 10, or `slots`; 1 to 1,000. */
  readonly concurrency?: number | undefined
  /** Jobs that are claimed ahead of a free slot. Unit: default the concurrency, at most 100; 0 with `slots`. */
  readonly prefetch?: number | undefined
  /** Its part of the worker's shared `slots`, against the weights of the others. Unit: default 1, 1 to 100. */
  readonly weight?: number | undefined
}

/** Options of a worker. */
export interface WorkerOptions {
  /** Complete before the start: their kinds are what this worker claims. */
  readonly handlers: readonly Handler[]
  /** Queues by name. Default: those that the handlers' jobs are defined with. */
  readonly queues?: Readonly<Record<string, QueueOptions>> | undefined
  /**
   * Slots that all queues share: handlers that run at once in this process. Unit: 1 to 1,000. Default: each queue has
   * slots of its own, as many as its concurrency.
   */
  readonly slots?: number | undefined
  /** All queues, the first one first: a free slot is strictly that one's. Needs `slots`. Default: turns by weight. */
  readonly precedence?: readonly string[] | undefined
  /** Shown to people; need not be unique. Default: host name and process id. */
  readonly name?: string | undefined
  /** How long jobs of a dead worker wait. Default 30s. */
  readonly lease?: Duration | undefined
  /** Default: a third of the lease. */
  readonly heartbeat?: Duration | undefined
  /** How often an idle worker looks while LISTEN is not proven. Default 2s. */
  readonly poll?: Duration | undefined
  /** How often it looks while LISTEN is proven. Default 10s. */
  readonly pollListening?: Duration | undefined
  /** Whether to be woken by the database. Default true. */
  readonly listen?: boolean | undefined
  /** A direct address for LISTEN where `connectionString` goes through a transaction pooler. */
  readonly listenConnectionString?: string | undefined
  /** How long running handlers may go on after `stop()`. Default 30s. */
  readonly grace?: Duration | undefined
  /** How long a handler may take to settle after its signal. Default 5s. */
  readonly abortGrace?: Duration | undefined
  /** At so many handlers that ignored their signal the worker drains and reports itself unfit. Default 5. */
  readonly stuckSlots?: number | undefined
  /** How long an outcome waits for company. Default 5ms. */
  readonly flush?: Duration | undefined
  /** How often the worker on duty looks for expired leases. Default 2s. */
  readonly maintenance?: Duration | undefined
  /**
   * The first SIGTERM or SIGINT drains, the second aborts; a process that deaf handlers would keep alive after that, or
   * after too many of them, is ended. Default false: the process is yours.
   */
  readonly signals?: boolean | undefined
  /** Default: warnings and errors on stderr. */
  readonly logger?: Logger | undefined
}

/** One queue as the worker serves it. */
export interface ServedQueue {
  readonly queue: string
  readonly concurrency: number
  readonly prefetch: number
  /** Whether it was asked for; else it follows the concurrency. */
  readonly hasOwnPrefetch: boolean
}

/** Options with their defaults; lengths in ms. */
export interface WorkerSettings {
  readonly handlers: ReadonlyMap<string, Handler>
  readonly queues: readonly ServedQueue[]
  /** How the queues share slots, if they do. */
  readonly sharing: Sharing | undefined
  readonly name: string
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly pollMs: number
  readonly pollListeningMs: number
  readonly listen: boolean
  readonly listenConnectionString: string | undefined
  readonly graceMs: number
  readonly abortGraceMs: number
  readonly stuckSlots: number
  readonly flushMs: number
  /** How long a job that must run alone keeps the others waiting. */
  readonly aloneWaitMs: number
  readonly maintenanceMs: number
  readonly signals: boolean
  readonly logger: Logger
}

/** The name of each option. */
export const WORKER_OPTIONS: readonly string[] = [
  'handlers',
  'queues',
  'slots',
  'precedence',
  'name',
  'lease',
  'heartbeat',
  'poll',
  'pollListening',
  'listen',
  'listenConnectionString',
  'grace',
  'abortGrace',
  'stuckSlots',
  'flush',
  'maintenance',
  'signals',
  'logger',
]

/** Errors: INVALID_OPTION, HANDLER_CONFLICT. */
export function workerSettings(options: WorkerOptions): WorkerSettings {
  checkOptions(options, WORKER_OPTIONS, 'worker')
  const handlers = handlersByKind(options.handlers)
  if (handlers.size > LIMITS.kindsPerWorker.max) {
    throw new RowlockError('INVALID_OPTION', `at most ${LIMITS.kindsPerWorker.max} kinds a worker`, {
      path: 'handlers',
    })
  }
  const { queues, sharing } = served(options, handlers)
  if (queues.length * handlers.size > LIMITS.linesPerWorker.max) {
    const lines = `${queues.length} queues × ${handlers.size} kinds`
    const message = `${lines} are more than ${LIMITS.linesPerWorker.max}: split the worker`
    throw new RowlockError('INVALID_OPTION', message, { path: 'queues' })
  }
  const length = (
    name: keyof WorkerOptions,
    limit: { default?: number; min?: number; max?: number },
    fallback: number,
  ) => {
    const value = options[name]
    if (value === undefined) return fallback
    return durationMs(value as Duration, {
      name,
      ...(limit.min !== undefined && { min: limit.min }),
      ...(limit.max !== undefined && { max: limit.max }),
    })
  }
  const leaseMs = length('lease', LIMITS.leaseMs, LIMITS.leaseMs.default)
  const heartbeatMs = length(
    'heartbeat',
    LIMITS.heartbeatMs,
    Math.max(LIMITS.heartbeatMs.min, Math.floor(leaseMs / 3)),
  )
  if (heartbeatMs * 2 > leaseMs) {
    throw new RowlockError('INVALID_OPTION', 'heartbeat must be at most half of the lease: one may be late', {
      path: 'heartbeat',
    })
  }
  const { min, max } = LIMITS.stuckSlots
  return {
    handlers,
    queues,
    sharing,
    name:
      typeof options.name === 'string' && options.name
        ? options.name.slice(0, 200)
        : `${os.hostname()}:${process.pid}`,
    leaseMs,
    heartbeatMs,
    pollMs: length('poll', LIMITS.pollMs, LIMITS.pollMs.default),
    pollListeningMs: length('pollListening', LIMITS.pollListeningMs, LIMITS.pollListeningMs.default),
    listen: options.listen ?? true,
    listenConnectionString: options.listenConnectionString,
    graceMs: length('grace', LIMITS.graceMs, LIMITS.graceMs.default),
    abortGraceMs: length('abortGrace', LIMITS.abortGraceMs, LIMITS.abortGraceMs.default),
    stuckSlots:
      options.stuckSlots === undefined
        ? LIMITS.stuckSlots.default
        : checkInteger(options.stuckSlots, { name: 'stuckSlots', min, max }),
    aloneWaitMs: LIMITS.aloneWaitMs.default,
    flushMs: length('flush', LIMITS.flushMs, LIMITS.flushMs.default),
    maintenanceMs: length('maintenance', LIMITS.maintenanceMs, LIMITS.maintenanceMs.default),
    signals: options.signals ?? false,
    logger: options.logger ?? stderrLogger,
  }
}

/** The grace that a stop asks for. Errors: INVALID_OPTION. */
export function stopGraceMs(options: StopOptions): number | undefined {
  checkOptions(options, ['grace'], 'stop')
  const { min, max } = LIMITS.graceMs
  return options.grace === undefined ? undefined : durationMs(options.grace, { name: 'grace', min, max })
}

function served(
  { queues, slots, precedence }: WorkerOptions,
  handlers: ReadonlyMap<string, Handler>,
): Pick<WorkerSettings, 'queues' | 'sharing'> {
  const wanted: Readonly<Record<string, QueueOptions>> =
    queues ?? Object.fromEntries([...handlers.values()].map(({ definition }) => [definition.queue, {}]))
  const names = Object.keys(wanted)
  if (names.length === 0 || names.length > LIMITS.queuesPerWorker.max) {
    throw new RowlockError('INVALID_OPTION', `queues must name 1 to ${LIMITS.queuesPerWorker.max} queues`, {
      path: 'queues',
    })
  }
  for (const queue of names) {
    checkQueue(queue, `queues.${queue}`)
    const path = `queues.${queue}`
    checkOptions(wanted[queue] ?? {}, ['concurrency', 'prefetch', 'weight'], path, `${path}.`)
  }
  const sharing = sharingOf({ slots, precedence, queues: wanted })
  return { queues: names.map((queue) => servedQueue(queue, wanted[queue] ?? {}, sharing)), sharing }
}

function servedQueue(queue: string, options: QueueOptions, sharing: Sharing | undefined): ServedQueue {
  const path = `queues.${queue}`
  const concurrency = checkInteger(options.concurrency ?? sharing?.slots ?? LIMITS.concurrency.default, {
    name: `${path}.concurrency`,
    min: LIMITS.concurrency.min,
    max: sharing?.slots ?? LIMITS.concurrency.max,
  })
  if (sharing !== undefined) return { queue, concurrency, prefetch: 0, hasOwnPrefetch: true }
  const prefetch = checkInteger(options.prefetch ?? defaultPrefetch(concurrency), {
    name: `${path}.prefetch`,
    min: LIMITS.prefetch.min,
    max: LIMITS.prefetch.max,
  })
  return { queue, concurrency, prefetch, hasOwnPrefetch: options.prefetch !== undefined }
}

/** As many as run at once. */
export function defaultPrefetch(concurrency: number): number {
  return Math.min(concurrency, LIMITS.prefetch.max)
}
