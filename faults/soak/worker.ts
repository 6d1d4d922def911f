// The program of one worker of a soak: handlers that end in every way, and gauges on request.

import { setTimeout as sleep } from 'node:timers/promises'
import { createRowlock, handle, handleInTransaction, permanent, snooze } from '../../src/index.ts'
import type { HandlerContext } from '../../src/worker/handler.ts'
import { gauge, watch } from './gauges.ts'
import { FOREVER_MS, jobs, SIDE, type Task } from './jobs.ts'
import { type Leak, leaking } from './leak.ts'
import { serve } from './serve.ts'

watch()
const { url, leaks } = JSON.parse(process.env.SOAK_PROGRAM!) as { url: string; leaks: readonly Leak[] }
const leak = leaking(leaks, url)
const { say, answer } = serve()

const noted =
  (body: (context: HandlerContext<Task>) => unknown) =>
  (context: HandlerContext<Task>): unknown => {
    leak(context)
    return body(context)
  }

const rowlock = createRowlock({ connectionString: url })
const worker = rowlock.worker({
  lease: '10s',
  maintenance: '1s',
  abortGrace: 100,
  stuckSlots: 100,
  queues: { default: { concurrency: 10, prefetch: 10 }, [SIDE]: { concurrency: 3, prefetch: 2 } },
  logger: { debug() {}, info() {}, warn: (_, message) => say({ warning: message }), error() {} },
  handlers: [
    handle(
      jobs.quick,
      noted(({ input }) => ({ luck: input.luck })),
    ),
    handle(
      jobs.careless,
      noted(async ({ input, signal }) => {
        for (let n = 0; n < 3; n++) signal.addEventListener('abort', () => void input)
        await sleep(5 + input.luck * 50)
      }),
    ),
    handle(
      jobs.flaky,
      noted(({ input, job }) => {
        if (job.attempt <= (input.luck < 0.7 ? 1 : 2)) throw new Error(`no luck with ${input.luck}`)
      }),
    ),
    handle(
      jobs.hopeless,
      noted(() => {
        throw permanent(new Error('there is no hope'))
      }),
    ),
    handle(
      jobs.later,
      noted(({ job }) => (job.attempt === 1 ? snooze(100) : undefined)),
    ),
    handle(
      jobs.late,
      noted(({ signal }) => sleep(FOREVER_MS, undefined, { signal })),
    ),
    handle(
      jobs.deaf,
      noted(() => sleep(400)),
    ),
    handle(
      jobs.unwanted,
      noted(({ signal }) => sleep(FOREVER_MS, undefined, { signal })),
    ),
    handleInTransaction(jobs.book, async (context) => {
      leak(context)
      const { input, job, tx } = context
      await tx.query('insert into soak.booked (job_id) values ($1)', [job.id])
      await sleep(input.luck * 20)
      if (input.luck < 0.3 && job.attempt === 1) throw new Error('rolled back')
    }),
    handle(
      jobs.large,
      noted(({ input }) => ({ text: input.text!.slice(0, 20_000) })),
    ),
  ],
})
worker.on('lease_lost', () => say({ mishap: 'the lease was lost' }))
worker.on('outcome_lost', ({ jobId }) => say({ mishap: `the outcome of job ${jobId} was lost` }))
worker.on('reaped', ({ jobs: lost }) => say({ mishap: `${lost.length} jobs were taken from a worker` }))

answer({
  gauge: async () => {
    const { running, prefetched, stuck } = worker.status
    return { ...(await gauge()), claimed: running + prefetched, stuck }
  },
  stop: async () => {
    await worker.stop({ grace: 5_000 })
    await rowlock.close()
  },
})
await worker.start()
say({ to: 0 })
