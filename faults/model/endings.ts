// The steps that end attempts, and those that say they started: by claims that hold, and by claims that are over.

import fc from 'fast-check'
import type { Ending, ModelJob, Pair } from './job.ts'
import type { ModelDatabase } from './queue.ts'
import { pick, type Step, same, step } from './steps.ts'

const nat = fc.nat(1000)
const runs = (model: ModelDatabase) => model.running().length > 0

/** What names the claim of a running job. */
export const pairOf = ({ id, claimId }: ModelJob): Pair => ({ id, claim_id: claimId! })

/** A claim that is over; rather one whose job runs again under another. */
export function staleOf(model: ModelDatabase, n: number): Pair {
  const again = model.stale.filter(({ id }) => model.jobs.get(id)?.state === 'running')
  return pick(again.length > 0 ? again : model.stale, n)
}

const ENDINGS = ['complete', 'fail', 'snooze', 'hand_back', 'abandon'] as const
const ending = fc.record({
  job: nat,
  how: fc.constantFrom(...ENDINGS, 'fail' as const, 'fail' as const),
  ranMs: fc.constantFrom(undefined, 0, 700),
  permanent: fc.constantFrom(false, false, false, true),
  afterMs: fc.constantFrom(undefined, 0, 20_000),
  isStale: fc.constantFrom(false, false, false, true),
})
type GivenEnding = typeof ending extends fc.Arbitrary<infer T> ? T : never

/** Several outcomes in one statement, as a reporter sends them; some name claims that are over. */
export const finish = fc.array(ending, { minLength: 1, maxLength: 4 }).map((given): Step => {
  return step({
    name: 'finish',
    with: given,
    can: runs,
    async run(model, real) {
      const outcomes: Record<string, Ending[]> = {}
      const named = new Set<string>()
      for (const one of given) {
        if (one.isStale && model.stale.length === 0) continue
        const pair = one.isStale ? staleOf(model, one.job) : pairOf(pick(model.running(), one.job))
        // A claim has one owner with one outcome.
        if (named.has(pair.id)) continue
        named.add(pair.id)
        outcomes[one.how] = [...(outcomes[one.how] ?? []), endingOf(pair, one)]
      }
      for (const list of Object.values(outcomes)) list.sort((a, b) => Number(a.id) - Number(b.id))
      const reply = await real.call<{ completed: string[]; moved: { id: string; to: string }[] }>(
        'finish',
        outcomes,
      )
      const completed = (outcomes.complete ?? []).filter((one) => model.complete(one)).map(({ id }) => id)
      const moved: [string, string][] = []
      for (const how of ENDINGS.slice(1)) {
        for (const one of outcomes[how] ?? []) {
          const to = model.settle(one, HOW[how as keyof typeof HOW])
          if (to !== null) moved.push([one.id, to])
        }
      }
      same([...reply.completed].sort(), completed.sort())
      same(reply.moved.map(({ id, to }) => [id, to]).sort(), moved.sort())
    },
  })
})

const HOW = {
  fail: { outcome: 'failed', failed: true },
  snooze: { outcome: 'snoozed' },
  hand_back: { outcome: 'handed_back' },
  abandon: { outcome: 'cancelled', cancelled: true },
} as const

function endingOf(pair: Pair, { how, ranMs, permanent, afterMs }: GivenEnding): Ending {
  const more: Record<string, unknown> = {}
  if (how === 'complete') more.result = { of: pair.id }
  if (how === 'fail') Object.assign(more, { cause: 'Error', permanent, after_ms: afterMs })
  if (how === 'snooze') more.after_ms = afterMs ?? 0
  if (how === 'hand_back') more.cause = 'shutdown'
  if (how === 'abandon') more.reason = 'no longer wanted'
  return JSON.parse(JSON.stringify({ ...pair, ran_ms: ranMs, ...more }))
}

export const start = fc
  .record({
    job: nat,
    agoMs: fc.constantFrom(0, 300, 1_000_000),
    inTransaction: fc.constantFrom(undefined, undefined, true, false),
  })
  .map((given): Step => {
    return step({
      name: 'start',
      with: given,
      can: runs,
      async run(model, real) {
        const pair = pairOf(pick(model.running(), given.job))
        const stale = model.stale.length > 0 ? [staleOf(model, given.job)] : []
        const sent = [pair, ...stale].map((one) => ({
          ...one,
          ago_ms: given.agoMs,
          in_transaction: given.inTransaction,
        }))
        const reply = await real.call('start', JSON.stringify(sent))
        model.start(pair, given.agoMs, given.inTransaction)
        same(reply, [pair.id])
      },
    })
  })

/** A handler's own transaction: it holds the job and completes it, or is rolled back. */
export const transact = fc
  .record({ job: nat, commits: fc.boolean(), isStale: fc.constantFrom(false, false, true) })
  .map((given): Step => {
    return step({
      name: 'complete in transaction',
      with: given,
      can: (model) => (given.isStale ? model.stale.length > 0 : runs(model)),
      async run(model, real) {
        const { id, claim_id } = given.isStale
          ? pick(model.stale, given.job)
          : pairOf(pick(model.running(), given.job))
        const refused = await real.transaction(
          [
            ['hold', id, claim_id],
            ['complete_in_transaction', id, claim_id, '"done"', 5],
          ],
          given.commits ? 'commit' : 'rollback',
        )
        same(refused, given.isStale ? 'RL020' : null)
        if (!given.isStale && given.commits) model.complete({ id, claim_id, result: 'done', ran_ms: 5 })
      },
    })
  })
