// What victims and the worker that comes after them do with their jobs: they write it into the ledger.

import { defineJob, fixed, handle, handleInTransaction, permanent, snooze } from '../../src/index.ts'
import type { Handler, HandlerContext, TransactionContext } from '../../src/worker/handler.ts'
import type { How } from '../history.ts'
import { jobs, type Task } from '../jobs.ts'
import type { Ledger } from '../ledger.ts'

/** In a transaction, which is rolled back the first time. */
export const undone = defineJob<Task>('undone', { retry: { maxAttempts: 10, backoff: fixed(50) } })

/** Is told of each moment of a handler. */
export type Notice = (label: string) => void

/** A handler of each sort of end. The slow one takes `slowMs`, or until it is aborted. */
export function handlersOf(ledger: Ledger, notice: Notice, slowMs: number): Handler[] {
  const noted =
    <T>(
      kind: string,
      body: (context: HandlerContext<Task>) => Promise<T>,
      howOf: (value: T) => How = () => 'returned',
    ) =>
    async (context: HandlerContext<Task>): Promise<T> => {
      const entry = ledger.call(context.job, context.idempotencyKey)
      await entry.start()
      notice(`handler ${kind}: start`)
      try {
        const value = await body(context)
        await entry.effect()
        notice(`handler ${kind}: effect`)
        await entry.end(howOf(value))
        // The handler has returned when this has run, and its outcome is not yet reported.
        setImmediate(() => notice(`handler ${kind}: return`))
        return value
      } catch (error) {
        await entry.end(context.signal.aborted ? 'aborted' : 'threw')
        throw error
      }
    }
  return [
    handle(
      jobs.quick,
      noted('quick', async ({ input }) => ({ ref: input.ref })),
    ),
    handle(
      jobs.slow,
      noted('slow', ({ signal }) => rest(slowMs, signal)),
    ),
    handle(
      jobs.flaky,
      noted('flaky', async ({ job }) => {
        if (job.attempt === 1) throw new Error('the first time it fails')
      }),
    ),
    handle(
      jobs.hopeless,
      noted('hopeless', async () => {
        throw permanent(new Error('there is no hope'))
      }),
    ),
    handle(
      jobs.later,
      noted(
        'later',
        async ({ job }) => (job.attempt === 1 ? snooze(50) : undefined),
        (value) => (value === undefined ? 'returned' : 'snoozed'),
      ),
    ),
    handleInTransaction(jobs.book, (context) => noted('book', () => book(context))(context)),
    handleInTransaction(undone, (context) =>
      noted('undone', async ({ job }) => {
        await book(context)
        if (job.attempt === 1) throw new Error('the first time it is undone')
      })(context),
    ),
  ]
}

async function book({ job, tx }: TransactionContext<Task>): Promise<void> {
  const values = [job.id, job.attempt]
  await tx.query('insert into faults.booked (job_id, attempt) values ($1, $2)', values)
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
