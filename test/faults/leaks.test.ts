// Thousands of jobs leave nothing behind in the process: no listener, no handle, no warning, no growing heap.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineJob, handle } from 'rowlock'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('leaks')
})
afterAll(() => rig.drop())

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const job = defineJob<number>('job')

test('the heap, the handles and the listeners after 24,000 jobs are what they were after 4,000', {
  timeout: 300_000,
}, async () => {
  const warnings: unknown[] = []
  const hear = (warning: unknown) => void warnings.push(warning)
  process.on('warning', hear)
  const signals: WeakRef<AbortSignal>[] = []
  const handler = handle(job, ({ input, signal }) => {
    // As careless handlers do: never taken off again.
    for (let n = 0; n < 3; n++) signal.addEventListener('abort', () => void input)
    if (input % 1_000 === 0) signals.push(new WeakRef(signal))
    return input
  })
  const worker = await rig.start({
    handlers: [handler],
    listen: true,
    queues: { default: { concurrency: 100, prefetch: 100 } },
    flush: 5,
  })
  const figures = () => ({
    heap: process.memoryUsage().heapUsed,
    handles: process.getActiveResourcesInfo().filter((name) => name !== 'Immediate' && name !== 'Timeout')
      .length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
  })
  const collected = async () => {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    return figures()
  }
  let n = 0
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++) {
      await rig.rowlock.enqueueMany(Array.from({ length: 1_000 }, () => job.with(n++)))
      await until('they are done', () => worker.status.running === 0 && worker.status.prefetched === 0)
      await rig.idle()
    }
    return collected()
  }
  const before = await rounds(4)
  await rounds(20)
  // What is still on its way is let go of in the end; what is kept is kept for ever.
  await until('nothing more is held than before', async () => {
    const after = await collected()
    return (
      after.listeners === before.listeners &&
      after.handles <= before.handles + 2 &&
      // 20,000 jobs that were kept would be tens of megabytes.
      after.heap - before.heap < 4_000_000 &&
      signals.filter((ref) => ref.deref() !== undefined).length <= 2
    )
  })
  process.off('warning', hear)
  expect(warnings).toEqual([])
  await worker.stop()
})
