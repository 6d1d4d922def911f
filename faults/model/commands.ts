// The steps that workers and producers take: put in, claim, beat, lose; and time that passes. Ends are in endings.ts.

import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { type ClaimOutcome, claimOutcomes, type Want } from './claim.ts'
import { finish, pairOf, staleOf, start, transact } from './endings.ts'
import type { ModelDatabase, NewJob } from './queue.ts'
import type { RealDatabase } from './real.ts'
import { pick, type Step, same, step } from './steps.ts'

const nat = fc.nat(1000)
export const queue = fc.constantFrom('a', 'b')

/** Two workers; one whose lease is over comes back under a new identity. */
function workerOf(model: ModelDatabase, n: number): string | undefined {
  return [...model.workers.keys()][n % Math.max(1, model.workers.size)]
}

const newJob = fc.record({
  queue,
  kind: fc.constantFrom('k', 'l'),
  priority: fc.constantFrom(0, 0, 0, 5, -5),
  delayMs: fc.constantFrom(0, 0, 0, 1_000, 60_000),
  expiresInMs: fc.constantFrom(null, null, null, null, 0, 10_000, 90_000),
  dedupeKey: fc.constantFrom(null, 'x', 'y', 'z'),
  maxAttempts: fc.constantFrom(null, 1, 1, 2, 3),
  backoffMs: fc.constantFrom(0, 5_000, 100_000),
  isLarge: fc.constantFrom(false, false, true),
})

/** Each input has a length of its own. */
let inputs = 0
const enqueue = fc.array(newJob, { minLength: 1, maxLength: 3 }).map((given): Step => {
  return step({
    name: 'enqueue',
    with: given,
    async run(model, real) {
      const jobs: NewJob[] = given.map(({ isLarge, ...job }) => ({
        ...job,
        inputBytes: (isLarge ? 4_100 : 10) + (inputs++ % 3_000),
      }))
      const reply = await real.call<{ ids: string[]; existing: number[] }>(
        'enqueue_many',
        JSON.stringify(jobs.map(wire)),
      )
      const existing: number[] = []
      for (const [n, job] of jobs.entries()) {
        const holder = model.holder(job.queue, job.dedupeKey)
        if (holder === undefined) {
          same(model.jobs.has(reply.ids[n]!), false)
          model.enqueue(reply.ids[n]!, job)
        } else {
          same(reply.ids[n], holder)
          existing.push(n)
        }
      }
      same(reply.existing, existing)
    },
  })
})

const wire = (job: NewJob) => ({
  kind: job.kind,
  queue: job.queue,
  priority: job.priority,
  delay: `${job.delayMs} ms`,
  expires_in: job.expiresInMs === null ? null : `${job.expiresInMs} ms`,
  dedupe_key: job.dedupeKey,
  max_attempts: job.maxAttempts,
  backoff: { type: 'fixed', delay_ms: job.backoffMs },
  // Two quotes are part of its text.
  input: 'x'.repeat(job.inputBytes - 2),
})

const claim = fc
  .record({
    worker: nat,
    queue,
    kinds: fc.constantFrom(['k', 'l'], ['k', 'l'], ['k'], ['l']),
    limit: fc.constantFrom(1, 2, 3, 1000),
    alone: fc.constantFrom(true, true, false),
  })
  .map((want): Step => {
    return step({
      name: 'claim',
      with: want,
      can: (model) => model.workers.size > 0,
      run: (model, real) => claimNow(model, real, workerOf(model, want.worker)!, want),
    })
  })

async function claimNow(
  model: ModelDatabase,
  real: RealDatabase,
  workerId: string,
  want: Want,
): Promise<void> {
  const answer = await real.answer('claim', workerId, JSON.stringify([want]))
  if (!model.holds(workerId)) return same(answer, { refused: 'RL020' })
  await take(model, real, workerId, (answer as { value: ClaimReply }).value, claimOutcomes(model, want))
}

const sorted = (ids: readonly string[]) => [...ids].sort().join()

/** What a claim answers, as far as it is looked at. */
interface ClaimReply {
  readonly jobs: readonly (readonly unknown[])[]
  readonly claim_id: string
  readonly alone: boolean
  readonly next_due: number | null
}

/** The claim did one of these. */
async function take(
  model: ModelDatabase,
  real: RealDatabase,
  workerId: string,
  reply: ClaimReply,
  outcomes: readonly ClaimOutcome[],
): Promise<void> {
  const ids = reply.jobs.map(([id]) => String(id)).sort()
  // The answer does not say who was too late: of the heads of the same age the claim went to either first.
  const gone = await real.notWaiting(outcomes.flatMap(({ expired }) => expired))
  const found = outcomes.find(
    ({ taken, alone, expired }) =>
      alone === reply.alone && sorted(taken) === ids.join() && sorted(expired) === sorted(gone),
  )
  if (found === undefined) {
    throw new Error(
      `the claim took [${ids}], alone ${reply.alone}, and not one of ${JSON.stringify(outcomes)}`,
    )
  }
  same(reply.next_due, found.nextDue)
  for (const id of found.expired) model.endWaiting(model.jobs.get(id)!, null, 'expired')
  for (const id of found.taken) {
    const job = model.jobs.get(id)!
    const row = reply.jobs.find(([taken]) => taken === id)!
    Object.assign(job, {
      state: 'running',
      attempt: job.attempt + 1,
      claimedAt: model.now,
      workerId,
      cause: null,
    })
    job.claimId = reply.claim_id
    same(
      [row[1], row[2], row[3], row[4], row[5], row[13], row[17]],
      [job.queue, job.kind, job.priority, job.attempt, job.failures, job.dedupeKey, job.losses],
    )
  }
}

const beat = fc.record({ worker: nat, job: nat }).map((given): Step => {
  return step({
    name: 'heartbeat',
    with: given,
    can: (model) => model.workers.size > 0,
    async run(model, real) {
      const workerId = workerOf(model, given.worker)!
      const started = model.running().length > 0 ? [pairOf(pick(model.running(), given.job))] : []
      const reply = await real.call<{ cancel: { id: string }[] } | null>(
        'heartbeat',
        workerId,
        JSON.stringify([...started, ...(model.stale.length > 0 ? [staleOf(model, given.job)] : [])]),
      )
      const asked = model.heartbeat(workerId)
      same(reply?.cancel.map(({ id }) => id).sort() ?? null, asked?.sort() ?? null)
      if (asked !== null) for (const pair of started) model.start(pair, 0, undefined)
    },
  })
})

/** One more worker begins. */
export async function enrol(model: ModelDatabase, real: RealDatabase): Promise<void> {
  const id = randomUUID()
  await real.call('register', id, '30 s', JSON.stringify({ name: 'model' }))
  model.register(id)
}

const register = fc.constant(null).map((): Step => {
  return step({
    name: 'register',
    with: {},
    can: (model) => [...model.workers.keys()].filter((id) => model.holds(id)).length < 2,
    run: enrol,
  })
})

const retire = nat.map((worker): Step => {
  return step({
    name: 'retire',
    with: { worker },
    can: (model) => model.workers.size > 0,
    async run(model, real) {
      const id = workerOf(model, worker)!
      same(await real.call('retire', id), model.retire(id))
    },
  })
})

const reap = fc.constant(null).map((): Step => {
  return step({ name: 'reap', with: {}, run: reapNow })
})

async function reapNow(model: ModelDatabase, real: RealDatabase): Promise<void> {
  const reply = await real.call<{ id: string }[]>('reap')
  same(reply.map(({ id }) => id).sort(), model.reap().sort())
}

/** A worker's time is over; now and then the reaper comes at once, and another worker in its place. */
const die = fc.record({ worker: nat, isReaped: fc.constantFrom(true, true, false) }).map((given): Step => {
  return step({
    name: 'die',
    with: given,
    can: (model) => model.workers.size > 0,
    async run(model, real) {
      const id = workerOf(model, given.worker)!
      await real.endLease(id)
      model.workers.get(id)!.expiresAt = Math.min(model.now, model.workers.get(id)!.expiresAt)
      if (!given.isReaped) return
      await reapNow(model, real)
      await enrol(model, real)
    },
  })
})

/** Two workers die of the same jobs, one after the other: suspects. */
const dieTwice = fc.record({ queue, limit: fc.constantFrom(1, 2) }).map((given): Step => {
  return step({
    name: 'die twice',
    with: given,
    async run(model, real) {
      for (let n = 0; n < 2; n++) {
        await enrol(model, real)
        const id = [...model.workers.keys()].at(-1)!
        await claimNow(model, real, id, { ...given, kinds: ['k', 'l'], alone: true })
        await real.endLease(id)
        model.workers.get(id)!.expiresAt = model.now
        await reapNow(model, real)
      }
    },
  })
})

const expire = fc.constant(null).map((): Step => {
  return step({
    name: 'expire',
    with: {},
    async run(model, real) {
      const ids = await real.call<number[]>('expire')
      same(ids.map(String).sort(), endLate(model).sort())
    },
  })
})

const sweep = fc.constant(null).map((): Step => {
  return step({
    name: 'sweep',
    with: {},
    async run(model, real) {
      const { expired, cancelled, keys } = await real.call<Record<string, number>>('sweep')
      same([expired, cancelled, keys], [endLate(model).length, 0, 0])
    },
  })
})

function endLate(model: ModelDatabase): string[] {
  const late = model.expired()
  for (const job of late) model.endWaiting(job, null, 'expired')
  return late.map(({ id }) => id)
}

const TIMES = [1, 500, 500, 5_000, 5_000, 20_000, 31_000, 120_000, 90_000_000]
const advance = fc.constantFrom(...TIMES).map((by): Step => {
  return step({
    name: 'advance',
    with: { by },
    async run(model, real: RealDatabase) {
      model.now += by
      await real.setClock(model.now)
    },
  })
})

/** By weight: an arbitrary that stands here twice is taken twice as often. */
export const WORKER_STEPS: fc.Arbitrary<Step>[] = [
  ...[enqueue, enqueue, enqueue, enqueue, register, register, register],
  ...[claim, claim, claim, claim, claim, claim, claim, claim, claim],
  ...[finish, finish, finish, finish, start, start, start, transact, beat, beat, retire],
  ...[die, die, die, dieTwice, reap, expire, sweep, advance, advance, advance],
]
