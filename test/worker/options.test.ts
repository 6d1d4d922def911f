// What a worker can be asked for is checked before anything starts.

import { describe, expect, test } from 'vitest'
import { type AnyJob, defineJob, handle } from '../../src/index.ts'
import { type WorkerOptions, workerSettings } from '../../src/worker/options.ts'

const mail = defineJob('mail', { queue: 'email' })
const jobs = (n: number): AnyJob[] => Array.from({ length: n }, (_, i) => defineJob(`kind-${i}`))
const handlers = (of: readonly AnyJob[]) => of.map((job) => handle(job, () => {}))
const settings = (options: Partial<WorkerOptions> = {}) =>
  workerSettings({ handlers: handlers([mail]), ...options })
const queues = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`q${i}`, {}]))

describe('a worker', () => {
  test('serves the queues of its handlers, with the documented defaults', () => {
    expect(settings()).toMatchObject({
      queues: [{ queue: 'email', concurrency: 10, prefetch: 10 }],
      leaseMs: 30_000,
      heartbeatMs: 10_000,
      pollMs: 2_000,
      pollListeningMs: 10_000,
      graceMs: 30_000,
      signals: false,
      listen: true,
    })
  })

  test('beats three times a lease unless it is told how often', () => {
    expect(settings({ lease: '3s' }).heartbeatMs).toBe(1_000)
    expect(settings({ lease: '3s', heartbeat: '500ms' }).heartbeatMs).toBe(500)
  })

  test('prefetches as much as it runs at once, at most 100, and nothing where that is asked', () => {
    const asked = { a: { concurrency: 3 }, b: { concurrency: 500 }, c: { prefetch: 0 } }
    expect(settings({ queues: asked }).queues.map(({ prefetch }) => prefetch)).toEqual([3, 100, 0])
  })
})

const REFUSED: [string, Partial<WorkerOptions>, string, RegExp][] = [
  ['no handlers', { handlers: [] }, 'handlers', /at least one/],
  ['a bare function', { handlers: [(() => {}) as never] }, 'handlers[0]', /handle\(/],
  ['two handlers of a kind', { handlers: handlers([mail, mail]) }, 'handlers[1]', /two handlers/],
  ['201 kinds', { handlers: handlers(jobs(201)) }, 'handlers', /200 kinds/],
  ['no queue', { queues: {} }, 'queues', /1 to 200/],
  ['201 queues', { queues: queues(201) }, 'queues', /1 to 200/],
  [
    '11 queues of 200 kinds',
    { queues: queues(11), handlers: handlers(jobs(200)) },
    'queues',
    /split the worker/,
  ],
  ['a slip', { concurency: 5 } as never, 'concurency', /known|mean/],
  ['a slip in a queue', { queues: { a: { concurency: 5 } as never } }, 'queues.a.concurency', /concurrency/],
  ['no slot', { queues: { a: { concurrency: 0 } } }, 'queues.a.concurrency', /1 to 1,?000/],
  ['a far prefetch', { queues: { a: { prefetch: 101 } } }, 'queues.a.prefetch', /0 to 100/],
  ['a short lease', { lease: '100ms' }, 'lease', /1s to 1h/],
  ['a heartbeat as long as the lease', { lease: '2s', heartbeat: '2s' }, 'heartbeat', /half of the lease/],
  ['an unknown unit', { poll: '5x' as never }, 'poll', /poll/],
]
test.each(REFUSED)('%s is refused, with the path of the option', (_, options, path, message) => {
  expect(() => settings(options)).toThrow(
    expect.objectContaining({ path, message: expect.stringMatching(message) }),
  )
})
