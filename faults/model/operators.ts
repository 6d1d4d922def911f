// The steps that people take: cancel, hurry, redrive, discard, retry, pause, settings.

import fc from 'fast-check'
import { queue } from './commands.ts'
import type { Answer, ModelDatabase } from './queue.ts'
import { pick, type Step, same, step } from './steps.ts'

const nat = fc.nat(1000)

/** Any job at all, in any state, now and then one that is not there. */
function anyId(model: ModelDatabase, n: number): string {
  const ids = [...model.jobs.keys()]
  return ids.length === 0 || n % 40 === 39 ? '999999999' : pick(ids, n)
}
/** One to which the verb applies, if there is one; now and then any. */
function fitting(model: ModelDatabase, n: number, ...states: readonly string[]): string {
  const fit = model.all(...states)
  return fit.length === 0 || n % 5 === 4 ? anyId(model, n) : pick(fit, n).id
}

type Verb = (model: ModelDatabase, id: string) => Answer
const byId = (name: string, states: readonly string[], act: Verb, more: readonly unknown[] = []) =>
  nat.map((job): Step => {
    return step({
      name,
      with: { job },
      async run(model, real) {
        const id = fitting(model, job, ...states)
        const expected = act(model, id)
        same(await real.answer(name, id, ...more), expected)
      },
    })
  })

const cancel = byId(
  'cancel',
  ['running', 'queued', 'retryable'],
  (model, id) => model.cancel(id, 'ada', 'no need'),
  ['ada', 'no need'],
)
const runNow = byId('run_now', ['queued', 'retryable'], (model, id) => model.runNow(id))
const prioritize = byId('prioritize', ['queued', 'retryable'], (model, id) => model.prioritize(id, 5), [5])
const redrive = byId('redrive', ['dead_letter'], (model, id) => model.redrive(id))
const discard = byId('discard', ['dead_letter'], (model, id) => model.discard(id, 'ada'), ['ada'])

const retry = nat.map((job): Step => {
  return step({
    name: 'retry',
    with: { job },
    async run(model, real) {
      const id = fitting(model, job, 'done', 'failed', 'cancelled')
      const answer = await real.answer('retry', id)
      const made = 'value' in answer ? { value: String(answer.value) } : answer
      const newId = 'value' in made ? made.value : '0'
      const expected = model.retry(id, () => newId)
      same(made, expected)
    },
  })
})

const hold = fc.record({ queue, verb: fc.constantFrom('pause', 'resume', 'resume') }).map((given): Step => {
  return step({
    name: given.verb,
    with: { queue: given.queue },
    async run(model, real) {
      const changed = given.verb === 'pause' ? model.pause(given.queue) : model.resume(given.queue)
      same(await real.call(given.verb, given.queue), changed)
    },
  })
})

const retention = fc.record({ queue, days: fc.constantFrom(0, 1, 7) }).map((given): Step => {
  return step({
    name: 'set_queue',
    with: given,
    async run(model, real) {
      await real.call('set_queue', given.queue, JSON.stringify({ retention_days: given.days }))
      model.setRetention(given.queue, given.days)
    },
  })
})

/** By weight, beside the workers' steps. */
export const OPERATOR_STEPS: fc.Arbitrary<Step>[] = [
  ...[cancel, cancel, runNow, prioritize, redrive, redrive, discard, retry, retry],
  ...[hold, retention],
]
