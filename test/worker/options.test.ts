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

  test('whose queues share slots claims nothing ahead, and each of them may take all', () => {
    const { queues: served, sharing } = settings({
      slots: 20,
      queues: { email: { weight: 3 }, sms: { concurrency: 5 } },
    })
    expect(served).toEqual([
      { queue: 'email', concurrency: 20, prefetch: 0, hasOwnPrefetch: true },
      { queue: 'sms', concurrency: 5, prefetch: 0, hasOwnPrefetch: true },
    ])
    expect(sharing).toEqual({
      slots: 20,
      precedence: undefined,
      weights: new Map([
        ['email', 3],
        ['sms', 1],
      ]),
    })
    expect(settings().sharing).toBeUndefined()
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
  ['no shared slot', { slots: 0 }, 'slots', /1 to 1,?000/],
  ['a weight of 0', { slots: 5, queues: { a: { weight: 0 } } }, 'queues.a.weight', /1 to 100/],
  ['a weight of 101', { slots: 5, queues: { a: { weight: 101 } } }, 'queues.a.weight', /1 to 100/],
  ['half a weight', { slots: 5, queues: { a: { weight: 1.5 } } }, 'queues.a.weight', /whole number/],
  ['a weight without slots', { queues: { a: { weight: 2 } } }, 'queues.a.weight', /with slots/],
  ['a precedence without slots', { precedence: ['email'] }, 'precedence', /with slots/],
  [
    'a weight beside a precedence',
    { slots: 5, precedence: ['a'], queues: { a: { weight: 2 } } },
    'queues.a.weight',
    /exclude each other/,
  ],
  [
    'a precedence of a queue that is not served',
    { slots: 5, precedence: ['email', 'emial'] },
    'precedence[1]',
    /does not serve the queue "emial"; did you mean 'email'/,
  ],
  ['a queue with two places', { slots: 5, precedence: ['email', 'email'] }, 'precedence[1]', /two places/],
  [
    'a queue without a place',
    { slots: 5, precedence: ['a'], queues: { a: {}, b: {} } },
    'precedence',
    /no place for the queue "b"/,
  ],
  ['a precedence in a word', { slots: 5, precedence: 'strict' as never }, 'precedence', /list of the queues/],
  ['a place that is no name', { slots: 5, precedence: [null] as never }, 'precedence[0]', /does not serve/],
  [
    'a prefetch of shared slots',
    { slots: 5, queues: { a: { prefetch: 5 } } },
    'queues.a.prefetch',
    /0 with shared slots/,
  ],
  [
    'more slots for one queue than for all',
    { slots: 5, queues: { a: { concurrency: 6 } } },
    'queues.a.concurrency',
    /1 to 5/,
  ],
  ['a short lease', { lease: '100ms' }, 'lease', /1s to 1h/],
  ['a heartbeat as long as the lease', { lease: '2s', heartbeat: '2s' }, 'heartbeat', /half of the lease/],
  ['an unknown unit', { poll: '5x' as never }, 'poll', /poll/],
]
test.each(REFUSED)('%s is refused, with the path of the option', (_, options, path, message) => {
  expect(() => settings(options)).toThrow(
    expect.objectContaining({ path, message: expect.stringMatching(message) }),
  )
})
