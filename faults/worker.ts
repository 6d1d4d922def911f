// The program of one worker of the chaos loop: its own process, told over IPC what befalls it, and telling its mishaps.

import { setTimeout as sleep } from 'node:timers/promises'
import { createRowlock, handle, handleInTransaction, permanent, snooze } from '../src/index.ts'
import type { HandlerContext, TransactionContext } from '../src/worker/handler.ts'
import type { How } from './history.ts'
import { CONCURRENCY, jobs, type Task } from './jobs.ts'
import { type Entry, openLedger } from './ledger.ts'

interface Input {
  readonly url: string
  readonly ledger: string
  readonly lease: number
  readonly calm: boolean
}

const { url, ledger: ledgerUrl, lease, calm } = JSON.parse(process.env.FAULTS_WORKER!) as Input
const say = (message: object) => process.send?.(message)
let isCalm = calm

process.on('unhandledRejection', (error) => say({ mishap: `unhandled rejection: ${String(error)}` }))
process.on('uncaughtExceptionMonitor', (error) => say({ mishap: `uncaught: ${String(error.stack)}` }))
process.on('warning', (warning) => say({ mishap: `warning: ${String(warning)}` }))
// Nothing is left behind by a loop that was killed.
process.on('disconnect', () => process.exit(99))

const ledger = openLedger(ledgerUrl)
const MAINTENANCE_MS = 1_000
const STUMBLE_MS = 1.5 * MAINTENANCE_MS

/** Write down that a call begins, what it does and how it ends. */
async function noted<T>(
  context: HandlerContext<Task>,
  body: (entry: Entry) => Promise<T>,
  howOf: (value: T) => How = () => 'returned',
): Promise<T> {
  const { job, idempotencyKey, signal } = context
  const entry = ledger.call(job, idempotencyKey)
  await entry.start(signal)
  let value: T
  try {
    value = await body(entry)
    await entry.effect(signal)
  } catch (error) {
    await entry.end(signal.aborted ? 'aborted' : 'threw', signal)
    throw error
  }
  await entry.end(howOf(value), signal)
  return value
}

/** Sleeps, unless all is to come to its end. */
const rest = (ms: number, signal?: AbortSignal) =>
  sleep(isCalm ? 1 : ms, undefined, { ...(signal && { signal }) })
const fails = (share: number) => !isCalm && Math.random() < share

/**
 * A statement fails, with it the transaction ends and the lock on the job's row; the handler goes on, longer than it
 * takes a reaper to come by. Half of the time it goes back to a savepoint: then it can commit.
 */
async function stumble({ tx, signal }: TransactionContext<Task>): Promise<void> {
  const isSaved = Math.random() < 0.5
  if (isSaved) await tx.query('savepoint before')
  await tx.query('select 1 / 0').catch(() => {})
  await rest(STUMBLE_MS, signal)
  if (isSaved) await tx.query('rollback to savepoint before')
}

const worker = createRowlock({ connectionString: url }).worker({
  lease,
  poll: 1_000,
  pollListening: 1_000,
  maintenance: MAINTENANCE_MS,
  abortGrace: 1_000,
  queues: {
    default: { concurrency: CONCURRENCY.default, prefetch: 4 },
    narrow: { concurrency: CONCURRENCY.narrow, prefetch: 1 },
  },
  logger: { debug() {}, info() {}, warn: (fields, message) => say({ log: message, fields }), error() {} },
  handlers: [
    handle(jobs.quick, (context) => noted(context, async () => ({ ref: context.input.ref }))),
    handle(jobs.slow, (context) =>
      noted(context, () => rest(50 + context.input.luck * 1_500, context.signal)),
    ),
    handle(jobs.flaky, (context) =>
      noted(context, async () => {
        await rest(5, context.signal)
        if (fails(0.4)) throw new Error(`no luck for ${context.input.ref}`)
      }),
    ),
    handle(jobs.hopeless, (context) =>
      noted(context, async () => {
        throw permanent(new Error('there is no hope'))
      }),
    ),
    handle(jobs.later, (context) =>
      noted(
        context,
        async () => (fails(0.5) ? snooze(200) : undefined),
        (value) => (value === undefined ? 'returned' : 'snoozed'),
      ),
    ),
    handle(jobs.late, (context) => noted(context, () => rest(600, context.signal))),
    handle(jobs.deaf, (context) => noted(context, () => rest(2_500))),
    handleInTransaction(jobs.book, (context) =>
      noted(context, async (entry) => {
        const { job, signal, tx } = context
        const { rows } = await tx.query('select pg_backend_pid() as pid')
        await entry.session(rows[0].pid, signal)
        await tx.query('insert into faults.booked (job_id, attempt) values ($1, $2)', [job.id, job.attempt])
        await rest(context.input.luck * 200, signal)
        if (fails(0.1)) throw new Error('rolled back')
        if (fails(0.1)) await stumble(context)
      }),
    ),
  ],
})
worker.on('stopped', ({ fit }) => {
  say({ stopped: true, fit })
  process.removeAllListeners('disconnect')
  process.disconnect?.()
})

interface Order {
  readonly stop?: { readonly grace: number }
  readonly calm?: boolean
  readonly blockMs?: number
}

process.on('message', ({ stop, calm: now, blockMs }: Order) => {
  if (now === true) isCalm = true
  if (blockMs !== undefined) {
    const end = performance.now() + blockMs
    while (performance.now() < end);
  }
  if (stop !== undefined) void worker.stop(stop)
})
await worker.start()
say({ ready: true })
