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

const purge = byId('purge', ['done', 'failed', 'cancelled'], (model, id) => model.purge(id))

const WORDS: Readonly<Record<string, string>> = {
  run_now: 'due',
  prioritize: 'prioritized',
  redrive: 'redriven',
  discard: 'discarded',
  retry: 'retried',
  purge: 'purged',
  RL010: 'not_found',
  RL012: 'wrong_state',
  RL013: 'dedupe_key_taken',
}
const MANY = {
  cancel: ['running', 'queued', 'retryable'],
  run_now: ['queued', 'retryable'],
  prioritize: ['queued', 'retryable'],
  redrive: ['dead_letter'],
  discard: ['dead_letter'],
  retry: ['done', 'failed', 'cancelled'],
  purge: ['done', 'failed', 'cancelled'],
} as const
type ManyVerb = keyof typeof MANY

/** One verb for several jobs at once: what each is answered, and the same as one by one in the order of their ids. */
const many = fc
  .record({
    verb: fc.constantFrom(...(Object.keys(MANY) as ManyVerb[]), 'redrive' as const, 'retry' as const),
    jobs: fc.array(nat, { minLength: 1, maxLength: 4 }),
  })
  .map(({ verb, jobs }): Step => {
    return step({
      name: `${verb}_many`,
      with: { jobs },
      async run(model, real) {
        const ids = [...new Set(jobs.map((n) => fitting(model, n, ...MANY[verb])))]
        const rows = await real.many(verb, ids, verb === 'prioritize' ? [5] : [])
        const made = new Map(rows.map(({ id, detail }) => [id, String(detail?.new_job_id ?? 0)]))
        const expected = new Map<string, string>()
        for (const id of [...ids].sort((a, b) => Number(a) - Number(b))) {
          const answer = onModel(model, verb, id, () => made.get(id)!)
          const word =
            'refused' in answer ? WORDS[answer.refused] : verb === 'cancel' ? answer.value : WORDS[verb]
          expected.set(id, String(word))
        }
        same(
          rows.map(({ id, answer }) => [id, answer]),
          ids.map((id) => [id, expected.get(id)]),
        )
      },
    })
  })

function onModel(model: ModelDatabase, verb: ManyVerb, id: string, newId: () => string): Answer {
  switch (verb) {
    case 'cancel':
      return model.cancel(id, null, null)
    case 'run_now':
      return model.runNow(id)
    case 'prioritize':
      return model.prioritize(id, 5)
    case 'redrive':
      return model.redrive(id)
    case 'discard':
      return model.discard(id, null)
    case 'retry':
      return model.retry(id, newId)
    case 'purge':
      return model.purge(id)
  }
}

/** By weight, beside the workers' steps. */
export const OPERATOR_STEPS: fc.Arbitrary<Step>[] = [
  ...[cancel, cancel, runNow, prioritize, redrive, redrive, discard, retry, retry],
  ...[many, many, many, many, purge, hold, retention],
]
