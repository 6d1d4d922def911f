// `rowlock work <module>`: a worker for the handlers that a module of the user's exports.

import { Command, InvalidArgumentError } from 'commander'
import { isRowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'
import { nearest, suggest } from '../ground/nearest.ts'
import { isPlainObject } from '../ground/plain.ts'
import { show } from '../ground/show.ts'
import { handlersByKind } from '../worker/handler.ts'
import { type QueueOptions, WORKER_OPTIONS, type WorkerOptions } from '../worker/options.ts'
import type { Worker } from '../worker/worker.ts'
import { count, span } from './amounts.ts'
import { EXITS, type Exit, UsageError } from './exit.ts'
import { loadModule, stackOf } from './load-module.ts'
import type { Shell } from './shell.ts'
import { length, wholeNumber } from './values.ts'
import { type WorkLog, workLog } from './work-log.ts'

interface Options {
  readonly queue?: readonly NamedQueue[]
  readonly concurrency?: number
  readonly slots?: number
  readonly weight?: readonly Weight[]
  readonly precedence?: readonly string[]
  readonly name?: string
  readonly lease?: number
  readonly grace?: number
  readonly poll?: number
  readonly listen: boolean
  readonly migrate?: boolean
}

interface NamedQueue {
  readonly queue: string
  readonly concurrency: number | undefined
}

interface Weight {
  readonly queue: string
  readonly weight: number
}

export function workCommand(shell: Shell): Command {
  const { concurrency, slots } = LIMITS
  return new Command('work')
    .summary('run a worker for the handlers of a module')
    .description(
      'Run a worker for the handlers that a module exports, until SIGTERM or Ctrl-C; then it drains.',
    )
    .argument('<module>', 'a file, or a package of the project')
    .option('--queue <name[:n]>', 'a queue to serve, and how many of its jobs at once; repeatable', collect)
    .option(
      '--concurrency <n>',
      'for queues that say nothing (default: 10)',
      wholeNumber(concurrency.min, concurrency.max),
    )
    .option('--slots <n>', 'slots that all queues share, in turns', wholeNumber(slots.min, slots.max))
    .option(
      '--weight <name:n>',
      "a queue's part of the shared slots (default: 1); repeatable",
      collectWeights,
    )
    .option(
      '--precedence <name>',
      'instead of turns: each queue, the first one first, and strictly so; repeatable',
      (name: string, before: readonly string[] = []) => [...before, name],
    )
    .option('--name <name>', 'shown to people (default: host and process id)')
    .option('--lease <length>', "how long a dead worker's jobs wait (default: 30s)", length)
    .option('--grace <length>', 'how long running handlers may go on after the signal (default: 30s)', length)
    .option(
      '--poll <length>',
      'how often an idle worker looks where notices are not heard (default: 2s)',
      length,
    )
    .option('--no-listen', 'poll only')
    .option('--migrate', 'migrate first')
    .addHelpText('after', HELP)
    .action(shell.run((name: string, options: Options) => work(shell, name, options)))
}

const HELP = `
Examples:
  rowlock work ./handlers.ts
  rowlock work ./handlers.js --queue email:50 --queue erp:5 --migrate
  rowlock work ./handlers.js --slots 20 --weight email:3 --weight erp:1

The module exports \`handlers\`, and, if it likes, \`queues\`:
  export const handlers = [handle(sendEmail, async ({ input }) => { … })]
  export const queues = { email: { concurrency: 50 } }
or as its default the list of handlers, the options of a worker, or a function that answers one of them.
TypeScript is read by Node.js itself where it can (22.18 and newer), else by the project's tsx.

The first SIGTERM or Ctrl-C drains, the second aborts. The log is on stderr; with --json it is NDJSON on stdout.`

function collect(text: string, before: readonly NamedQueue[] = []): readonly NamedQueue[] {
  const at = text.lastIndexOf(':')
  if (at < 0) return [...before, { queue: text, concurrency: undefined }]
  const { min, max } = LIMITS.concurrency
  const n = text.slice(at + 1)
  if (!/^[-+]?\d+$/.test(n)) {
    throw new InvalidArgumentError(
      `Behind the last colon stands how many of its jobs run at once, from ${min} to ${count(max)}: ` +
        `${text.slice(0, at)}:5, or ${text}:5 where the name has a colon.`,
    )
  }
  return [...before, { queue: text.slice(0, at), concurrency: wholeNumber(min, max)(n) }]
}

function collectWeights(text: string, before: readonly Weight[] = []): readonly Weight[] {
  const at = text.lastIndexOf(':')
  const { min, max } = LIMITS.weight
  if (at < 0) {
    throw new InvalidArgumentError(`Behind a last colon stands its weight, from ${min} to ${max}: ${text}:3.`)
  }
  return [...before, { queue: text.slice(0, at), weight: wholeNumber(min, max)(text.slice(at + 1)) }]
}

/** Queues on the line that neither a handler nor the module has: what waits there is served, if a kind fits. */
function unknownQueues({ handlers, queues }: WorkerOptions, { queue: named = [] }: Options): string[] {
  const known = [...handlers.map(({ definition }) => definition.queue), ...Object.keys(queues ?? {})]
  return named
    .filter(({ queue }) => !known.includes(queue))
    .map(({ queue }) => {
      const meant = nearest(queue, known)
      const mean = meant === undefined ? '' : `; did you mean ${meant}?`
      return `no handler and no queues of the module have the queue ${queue}${mean}`
    })
}

async function work(shell: Shell, name: string, typed: Options): Promise<Exit> {
  const url = shell.url
  const log = workLog(shell)
  process.on('uncaughtException', (error) => {
    log.error(
      { error: error instanceof Error ? stackOf(error) : String(error) },
      'nobody caught this error, so the process ends here; its jobs are given back when its lease is over',
    )
    shell.io.exit(EXITS.failed.code)
  })
  const options = { ...(await optionsOf(name)), ...fromLine(typed) }
  try {
    return await start(shell, name, options, typed, url, log)
  } finally {
    // Their own pools and timers would keep the process, though nothing of the worker is left.
    setTimeout(() => shell.io.exit(Number(process.exitCode ?? EXITS.failed.code)), LEAVE_MS).unref()
  }
}

/** What was said gets out in this time. */
const LEAVE_MS = 200

async function start(
  shell: Shell,
  name: string,
  options: WorkerOptions,
  typed: Options,
  url: string,
  log: WorkLog,
): Promise<Exit> {
  const queues = queuesOf(options, typed)
  for (const warning of unknownQueues(options, typed)) log.warn({}, warning)
  const { createRowlock, databaseOf } = await import('../rowlock.ts')
  const rowlock = createRowlock({ connectionString: url, schema: shell.schema })
  const done = { succeeded: 0, failed: 0 }
  let worker: Worker
  try {
    worker = rowlock.worker({ logger: log, ...options, ...(queues && { queues }), signals: true })
  } catch (error) {
    throw isRowlockError(error) ? new UsageError(`${name}: ${error.message}`) : error
  }
  worker.use(async ({ log: own }, next) => {
    try {
      const value = await next()
      done.succeeded++
      return value
    } catch (error) {
      done.failed++
      own.warn({ error: error instanceof Error ? stackOf(error) : String(error) }, 'the handler failed')
      throw error
    }
  })
  if (typed.migrate) {
    const { migrate } = await import('../engine/migrate.ts')
    const { applied } = await migrate(databaseOf(rowlock))
    log.info({ applied }, applied.length > 0 ? 'migrated' : 'nothing to migrate')
  }
  return run(shell, worker, { handlers: options.handlers, queues, done, log })
}

interface Running {
  readonly handlers: WorkerOptions['handlers']
  readonly queues: WorkerOptions['queues']
  readonly done: { readonly succeeded: number; readonly failed: number }
  readonly log: WorkLog
}

async function run(shell: Shell, worker: Worker, { handlers, queues, done, log }: Running): Promise<Exit> {
  const since = shell.io.now()
  const ended = new Promise<{ readonly fit: boolean }>((resolve) => worker.once('stopped', resolve))
  let signals = 0
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    shell.io.onSignal(name, () => {
      signals++
      const { running } = worker.status
      if (signals === 1) log.info({ running }, `${name}: draining; once more aborts what runs`)
      else log.warn({ running }, `${name}: aborting what runs`)
    })
  }
  worker.on('leased', ({ workerId }) => {
    const kinds = handlers.map(({ definition }) => definition.kind)
    const served = Object.keys(queues ?? Object.fromEntries(handlers.map((h) => [h.definition.queue, 1])))
    log.info({ workerId, kinds, queues: served, pid: process.pid }, 'working')
  })
  await worker.start()
  const { fit } = await ended
  const ran = shell.io.now() - since
  log.info(
    { done: done.succeeded, failed: done.failed, ms: Math.round(ran) },
    `stopped after ${span(ran)}: ${count(done.succeeded)} done, ${count(done.failed)} failed attempts`,
  )
  await log.flushed()
  return fit ? 'done' : 'failed'
}

/** The options that a module stands for. Errors: UsageError. */
async function optionsOf(name: string): Promise<WorkerOptions> {
  const module = await loadModule(name)
  let value: unknown = module
  if (module.handlers === undefined && module.default !== undefined) {
    value = module.default
    // CommonJS that was compiled from ECMAScript has the default one deeper.
    const inner = value as { __esModule?: unknown; default?: unknown; handlers?: unknown } | null
    if (inner?.__esModule === true && inner.handlers === undefined) value = inner.default
    try {
      if (typeof value === 'function') value = await value()
    } catch (error) {
      const stack = error instanceof Error ? stackOf(error) : String(error)
      throw new UsageError(`the default function of ${name} failed:\n${stack}`)
    }
  }
  const found = Array.isArray(value) ? { handlers: value } : value
  if (typeof found !== 'object' || found === null || !('handlers' in found))
    throw new UsageError(wanted(name, module))
  // A module may export what it likes beside the handlers; options that somebody wrote may not.
  const options = value === module ? pick(module) : found
  if (value !== module && isPlainObject(options)) {
    const given: Readonly<Record<string, unknown>> = options
    const unknown = Object.keys(given).find(
      (key) => !WORKER_OPTIONS.includes(key) && key !== '__esModule' && given[key] !== undefined,
    )
    if (unknown !== undefined)
      throw new UsageError(`${name}: a worker has no option ${unknown}; ${suggest(unknown, WORKER_OPTIONS)}`)
  }
  try {
    handlersByKind((options as WorkerOptions).handlers)
  } catch (error) {
    throw new UsageError(`${name}: ${(error as Error).message}`)
  }
  return pick(options as Readonly<Record<string, unknown>>)
}

function pick(module: Readonly<Record<string, unknown>>): WorkerOptions {
  return Object.fromEntries(
    WORKER_OPTIONS.filter((key) => module[key] !== undefined).map((key) => [key, module[key]]),
  ) as unknown as WorkerOptions
}

function wanted(name: string, module: Readonly<Record<string, unknown>>): string {
  if (module.handlers === undefined && 'default' in module)
    return (
      `${name} exports no handlers, and its default is ${show(module.default, 40)}: ` +
      'neither a list of handlers, nor the options of a worker, nor a function that answers one of them. Write:\n' +
      '  export const handlers = [handle(sendEmail, async ({ input }) => { … })]'
    )
  const names = Object.keys(module).filter((key) => key !== 'default' && key !== 'module.exports')
  const has = names.length === 0 ? 'nothing' : names.slice(0, 10).join(', ')
  const meant = names.find((key) => /^handlers?$/i.test(key))
  return (
    `${name} exports no handlers (it exports ${has}${meant ? `: is ${meant} meant?` : ''}). Write:\n` +
    '  export const handlers = [handle(sendEmail, async ({ input }) => { … })]'
  )
}

/** What stands on the line goes before what the module says. */
function fromLine({ name, slots, precedence, lease, grace, poll, listen }: Options): Partial<WorkerOptions> {
  return {
    ...(name !== undefined && { name }),
    ...(slots !== undefined && { slots }),
    ...(precedence !== undefined && { precedence }),
    ...(lease !== undefined && { lease }),
    ...(grace !== undefined && { grace }),
    ...(poll !== undefined && { poll }),
    ...(!listen && { listen }),
  }
}

function queuesOf(
  { handlers, queues }: WorkerOptions,
  { queue: named, concurrency, weight: weights }: Options,
): Readonly<Record<string, QueueOptions>> | undefined {
  if (named === undefined && concurrency === undefined && weights === undefined) return queues
  const own: Readonly<Record<string, QueueOptions>> = queues ?? {}
  const names =
    named?.map(({ queue }) => queue) ??
    (queues === undefined ? handlers.map(({ definition }) => definition.queue) : Object.keys(own))
  const unserved = weights?.find(({ queue }) => !names.includes(queue))
  if (unserved !== undefined) {
    const { queue } = unserved
    throw new UsageError(`--weight: this worker does not serve the queue ${queue}; ${suggest(queue, names)}`)
  }
  const said = new Map(named?.map(({ queue, concurrency: n }) => [queue, n]))
  const weighed = new Map(weights?.map(({ queue, weight }) => [queue, weight]))
  return Object.fromEntries(
    names.map((queue) => {
      const n = said.get(queue) ?? own[queue]?.concurrency ?? concurrency
      const weight = weighed.get(queue)
      return [
        queue,
        {
          ...own[queue],
          ...(n !== undefined && { concurrency: n }),
          ...(weight !== undefined && { weight }),
        },
      ]
    }),
  )
}
