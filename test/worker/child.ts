// The program of a worker that tests kill, stop and cut off. It says over IPC what it does.

import pg from 'pg'
import { createRowlock, handle, handleInTransaction } from '../../src/index.ts'
import { jobs } from './child-jobs.ts'

const { url, ledger, options } = JSON.parse(process.env.CHILD_INPUT!)
const say = (message: object) => process.send?.(message)

// Never left behind by a test that was itself killed.
process.on('disconnect', () => process.exit(99))
process.on('unhandledRejection', (error) => say({ fault: String(error) }))
process.on('warning', (warning) => say({ warning: String(warning) }))

const book = new pg.Pool({ connectionString: ledger, max: 2, allowExitOnIdle: true })
book.on('error', () => {})
const note = (phase: string, job: { id: string; attempt: number }) =>
  book.query('insert into ledger (job_id, attempt, pid, phase) values ($1, $2, $3, $4)', [
    job.id,
    job.attempt,
    process.pid,
    phase,
  ])
const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

let goOn: () => void = () => {}
const told = new Promise<void>((resolve) => {
  goOn = resolve
})

const worker = createRowlock({ connectionString: url }).worker({
  poll: 50,
  maintenance: 100,
  listen: false,
  ...options,
  handlers: [
    handle(jobs.work, async ({ input, job }) => {
      say({ started: job.id })
      await note('start', job)
      await pause(input)
      await note('end', job)
    }),
    handle(jobs.gated, async ({ job }) => {
      say({ started: job.id })
      await note('start', job)
      await told
      await note('end', job)
    }),
    handle(jobs.poison, ({ job }) => {
      say({ poison: job.id })
      process.exit(3)
    }),
    handle(jobs.block, ({ input, job }) => {
      say({ blocking: job.id })
      const end = performance.now() + input
      while (performance.now() < end);
    }),
    handle(jobs.deaf, ({ job }) => {
      say({ deaf: job.id })
      return new Promise<void>(() => {})
    }),
    // Holds the process as well.
    handle(jobs.hang, ({ job }) => {
      say({ hanging: job.id })
      setInterval(() => {}, 1_000)
      return new Promise<void>(() => {})
    }),
    handleInTransaction(jobs.write, async ({ input, job, tx }) => {
      await tx.query('insert into business (job_id) values ($1)', [job.id])
      say({ wrote: job.id })
      await pause(input)
    }),
  ],
})
for (const name of ['leased', 'lease_lost', 'outcome_lost', 'stuck', 'stopped'] as const) {
  worker.on(name, (facts: object) => say({ event: name, ...facts }))
}
// The channel holds the process: whoever wants to see it end by itself lets go of it when the worker has stopped.
worker.on('stopped', () => {
  process.removeAllListeners('disconnect')
  process.disconnect()
})
process.on('message', (message: { stop?: object; goOn?: boolean }) => {
  if (message.goOn) goOn()
  if (message.stop !== undefined) void worker.stop(message.stop)
})
await worker.start()
say({ ready: true })
