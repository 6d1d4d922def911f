// The state table as data: each verb in each state, allowed or refused, and fences that hold for every write.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  BULK_VERBS,
  type BulkVerb,
  STATES,
  type State,
  statesOf,
  TRANSITIONS,
  type Transition,
  VERBS,
  type Verb,
} from '../../src/ground/states.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import {
  endLease,
  enqueue,
  type Hand,
  type Held,
  held,
  picture,
  type Row,
  refusal,
  register,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('states')
})
afterAll(() => db.drop())

/** A job, the claim it is or was held under, and the queue it has for itself. */
interface Subject extends Held {
  readonly queue: string
}
let queues = 0

/** Bring a new job into a state, alone in its queue. */
async function into(state: State, options: Record<string, unknown> = {}): Promise<Subject> {
  const queue = `q${++queues}`
  hand = await register(db)
  const id = await enqueue(db, { queue, backoff: { type: 'fixed', delay_ms: 0 }, ...options })
  if (state === 'queued') return { id, claim_id: randomUUID(), queue }
  const { jobs } = await hand.claim({ queue })
  const job = { ...held(jobs[0]!), queue }
  const error = { error: { message: 'no' }, cause: 'Error' }
  if (state === 'retryable') await verb(db, 'fail', [{ ...held(job), ...error }])
  if (state === 'done') await verb(db, 'complete', [held(job)])
  if (state === 'failed') await verb(db, 'fail', [{ ...held(job), ...error, permanent: true }])
  if (state === 'cancelled') await verb(db, 'abandon', [held(job)])
  if (state === 'dead_letter') {
    await db.sql('update rowlock.running set max_attempts = 1 where id = $1', [id])
    await verb(db, 'fail', [{ ...held(job), ...error }])
  }
  expect(await stateOf(id)).toBe(state)
  return job
}

const stateOf = (id: string) => db.value<string>('select state from rowlock.job where id = $1', [id])
const call = (name: string, ...values: unknown[]) =>
  db.value(`select rowlock.${name}(${values.map((_, i) => `$${i + 1}`).join(', ')})`, values)

/** Do the verb to the job. Returns what it answered. */
async function act(name: Verb, job: Subject, row?: Transition): Promise<unknown> {
  switch (name) {
    case 'enqueue':
      throw new Error('makes a job, moves none')
    case 'claim':
      return (await hand.claim({ queue: job.queue })).ids
    case 'complete':
      return call('complete', JSON.stringify([held(job, { result: { ok: true } })]))
    case 'fail': {
      if (row?.to === 'dead_letter') await exhaust(job)
      const permanent = row?.to === 'failed'
      return verb(db, 'fail', [held(job, { error: { message: 'no' }, cause: 'Error', permanent })])
    }
    case 'snooze':
      return verb(db, 'snooze', [held(job, { after_ms: 60_000 })])
    case 'hand_back':
      return verb(db, 'hand_back', [held(job)])
    case 'reap': {
      if (row?.to === 'dead_letter') await exhaust(job)
      if (row !== undefined && row.to !== 'queued') await verb(db, 'start', [held(job)])
      await endLease(db, hand)
      return call('reap')
    }
    case 'cancel': {
      const answer = await call('cancel', job.id)
      // Settled when the handler ends, unless it ends well.
      if (answer === 'requested') await verb(db, 'fail', [held(job, { cause: 'cancelled' })])
      return answer
    }
    case 'expire':
      await db.sql(`update rowlock.waiting set expires_at = clock_timestamp() where id = $1`, [job.id])
      return call('expire')
    case 'prioritize':
      return call('prioritize', job.id, 7)
    default:
      return call(name, job.id)
  }
}

const exhaust = (job: Held) =>
  db.sql('update rowlock.running set max_attempts = failures + 1 where id = $1', [job.id])

describe('a verb that applies ends where the table says', () => {
  test.each(TRANSITIONS.filter(({ from }) => from !== null))('$from, $verb: $to $when', async (row) => {
    const job = await into(row.from!)
    const before = await picture(db)
    const answer = await act(row.verb, job, row)
    const target = row.creates ? String(answer) : job.id
    expect((await stateOf(target)) ?? null).toBe(row.to)
    if (row.creates) {
      expect(await stateOf(job.id)).toBe(row.from)
      expect(await db.value('select retried_from from rowlock.job where id = $1', [target])).toBe(job.id)
    }
    // Only this job was touched, and it stands in one table.
    const rows = await db.sql('select state from rowlock.job where id = $1', [target])
    expect(rows).toHaveLength(row.to === null ? 0 : 1)
    expect(without(await picture(db), target)).toEqual(without(before, target))
  })

  test('enqueue makes a queued job', async () => {
    const row = TRANSITIONS.filter(({ from }) => from === null)
    expect(row).toEqual([{ from: null, verb: 'enqueue', to: 'queued' }])
    expect(await stateOf(await enqueue(db))).toBe('queued')
  })

  test('run_now makes a scheduled job due, and does not send one that is due to the end of its line', async () => {
    const due = async (id: string) =>
      (await db.value<Date>('select available_at from rowlock.job where id = $1', [id])).getTime()
    const scheduled = await enqueue(db, { delay: '1 hour' })
    await call('run_now', scheduled)
    expect(await due(scheduled)).toBeLessThanOrEqual(Date.now() + 1000)
    const old = await enqueue(db, { available_at: '2026-01-01T00:00:00Z' })
    await call('run_now', old)
    expect(new Date(await due(old)).toISOString()).toBe('2026-01-01T00:00:00.000Z')
  })

  test('a job that is retryable says why, and a queued one says nothing', async () => {
    const retryable = await into('retryable')
    expect(await db.value('select cause from rowlock.job where id = $1', [retryable.id])).toBe('Error')
    await db.sql('update rowlock.waiting set available_at = clock_timestamp() where id = $1', [retryable.id])
    const { jobs } = await hand.claim({ queue: retryable.queue })
    await verb(db, 'hand_back', [held(jobs[0]!)])
    expect(await db.value('select cause from rowlock.job where id = $1', [retryable.id])).toBeNull()
  })
})

function without(all: Record<string, unknown[]>, id: string) {
  const own = (row: Row) => String(row.id ?? row.job_id) === String(id)
  return Object.fromEntries(Object.entries(all).map(([table, rows]) => [table, rows.filter((r) => !own(r))]))
}

function only(all: Record<string, unknown[]>, id: string) {
  const own = (row: Row) => String(row.id ?? row.job_id) === String(id)
  return Object.fromEntries(Object.entries(all).map(([table, rows]) => [table, rows.filter(own)]))
}

/** Verbs that name a job by its id alone, and how they refuse. */
const BY_ID = BULK_VERBS
const BY_CLAIM = ['complete', 'fail', 'snooze', 'hand_back', 'abandon', 'start'] as const
const allowed = (from: State, name: Verb) => statesOf(name).includes(from)

describe('a verb that does not apply changes nothing', () => {
  test.each(
    STATES.flatMap((state) =>
      BY_ID.filter((name) => !allowed(state, name)).map((name) => [state, name] as const),
    ),
  )('%s, %s', async (state, name) => {
    const job = await into(state)
    const before = await picture(db, ALL)
    if (name === 'cancel') {
      // A dead letter is no running thing to stop: discard gives it up.
      expect(await act(name, job)).toBe('already_ended')
    } else {
      const error = await refusal(act(name, job))
      expect(error.code).toBe('RL012')
      expect(error.detail).toEqual({ state })
    }
    expect(await picture(db, ALL)).toEqual(before)
  })

  test.each(
    STATES.filter((state) => state !== 'running').flatMap((state) =>
      BY_CLAIM.map((name) => [state, name] as const),
    ),
  )('%s, %s with the claim it was held under', async (state, name) => {
    const job = await into(state)
    const before = await picture(db, ALL)
    expect(await verb(db, name, [held(job, { after_ms: 0 })])).toEqual([])
    expect(await picture(db, ALL)).toEqual(before)
  })

  test.each(STATES.filter((state) => !allowed(state, 'claim')))(
    '%s, claim, reap and expire',
    async (state) => {
      const job = await into(state)
      const before = await picture(db, ALL)
      expect((await hand.claim({ queue: job.queue })).ids).toEqual([])
      expect(await call('expire')).toEqual([])
      if (state !== 'running') expect(await call('reap')).toEqual([])
      expect(await picture(db, ALL)).toEqual(before)
    },
  )

  test.each(BY_ID)('%s of an id that no job has is RL010', async (name) => {
    const before = await picture(db, ALL)
    const error = await refusal(act(name, { id: '999999999', claim_id: randomUUID(), queue: '' }))
    expect(error.code).toBe('RL010')
    expect(await picture(db, ALL)).toEqual(before)
  })

  test('discard and redrive refuse twice: the first call has done it', async () => {
    const one = await into('dead_letter')
    await call('redrive', one.id)
    expect(await db.refusal('select rowlock.redrive($1)', [one.id])).toBe('RL012')
    const other = await into('dead_letter')
    await call('discard', other.id)
    expect(await db.refusal('select rowlock.discard($1)', [other.id])).toBe('RL012')
  })
})

const ALL = [
  'waiting',
  'running',
  'finished',
  'dead_letter',
  'attempt',
  'dedupe',
  'cancel_request',
  'audit',
  'queue',
]

describe('a verb for many answers each job by its state', () => {
  const CHANGED: Record<BulkVerb, string> = {
    cancel: 'cancelled',
    run_now: 'due',
    prioritize: 'prioritized',
    redrive: 'redriven',
    discard: 'discarded',
    retry: 'retried',
    purge: 'purged',
  }

  test.each(BULK_VERBS)('%s', async (name) => {
    const jobs = new Map<State, Subject>()
    for (const state of STATES) jobs.set(state, await into(state))
    const ids = [...jobs.values(), { id: '999999999' }].map(({ id }) => id)
    if (name === 'run_now') await db.sql(`update rowlock.waiting set available_at = now() + interval '1 h'`)
    const before = await picture(db)
    const more = name === 'prioritize' ? ', 7' : ''
    const rows = await db.sql(`select * from rowlock.${name}_many($1${more})`, [ids])
    expect(rows.map(({ id }) => id)).toEqual(ids)
    const expected = STATES.map((state) => {
      if (name === 'cancel' && state === 'running') return 'requested'
      if (allowed(state, name)) return CHANGED[name]
      return name === 'cancel' ? 'already_ended' : 'wrong_state'
    })
    expect(rows.map(({ answer }) => answer)).toEqual([...expected, 'not_found'])
    // What it does to a job it does as the verb for one does; the others are as they were.
    const after = await picture(db)
    for (const [n, [state, { id }]] of [...jobs].entries()) {
      const { detail } = rows[n]!
      if (allowed(state, name)) {
        const row = TRANSITIONS.find((one) => one.from === state && one.verb === name)!
        const to = row.creates || state === 'running' ? state : row.to
        expect((await stateOf(id)) ?? null).toBe(to)
        if (row.creates) expect(await stateOf(detail.new_job_id)).toBe(row.to)
      } else {
        expect(detail).toEqual(name === 'cancel' ? null : { state })
        expect(only(after, id)).toEqual(only(before, id))
      }
    }
    const noted = await db.sql('select job_id, verb from rowlock.audit where job_id = any ($1::bigint[])', [
      ids,
    ])
    const changed = STATES.filter((state) => allowed(state, name)).map((state) => jobs.get(state)!.id)
    expect(noted).toEqual(changed.map((id) => ({ job_id: id, verb: name })))
    if (name === 'cancel') await db.sql('delete from rowlock.cancel_request')
  })

  test('SQL and TypeScript know the same states of each, and no other verb', async () => {
    const known = VERBS.map((name) => [
      name,
      (BULK_VERBS as readonly Verb[]).includes(name) ? statesOf(name) : null,
    ])
    const rows = await db.sql('select v, rowlock.verb_states(v) as states from unnest($1::text[]) as v', [
      VERBS,
    ])
    expect(rows.map(({ v, states }) => [v, states])).toEqual(known)
  })
})

describe('a stale claim changes nothing', () => {
  test.each(BY_CLAIM)('%s with the claim of nobody', async (name) => {
    const job = await into('running')
    const before = await picture(db, ALL)
    expect(await verb(db, name, [held({ id: job.id, claim_id: randomUUID() })])).toEqual([])
    expect(await verb(db, name, [])).toEqual([])
    expect(await picture(db, ALL)).toEqual(before)
  })

  test.each(BY_CLAIM)('%s with an older claim of the same worker, beside a valid pair', async (name) => {
    const again = await into('running')
    await verb(db, 'hand_back', [held(again)])
    const { jobs } = await hand.claim({ queue: again.queue })
    expect(jobs[0]!.id).toBe(again.id)
    expect(jobs[0]!.claim_id).not.toBe(again.claim_id)
    const valid = await into('running')
    const row = () => db.sql('select * from rowlock.running where id = $1', [again.id])
    const before = await row()

    const reply = await verb(db, name, [held(again), held(valid)])
    const ids = reply.map((one: Row) => String(one.id ?? one))
    expect(ids).toEqual([valid.id])
    expect(await row()).toEqual(before)
    // The new claim is as good as before.
    expect(await verb(db, 'complete', [held(jobs[0]!)])).toEqual([again.id])
  })

  test('finish answers what it changed, and leaves out what had another owner', async () => {
    const stale = await into('running')
    await verb(db, 'hand_back', [held(stale)])
    await hand.claim({ queue: stale.queue })
    const [well, badly] = [await into('running'), await into('running')]
    const reply = await call('finish', {
      complete: [held(stale), held(well)],
      fail: [held(badly, { cause: 'Error' }), held(stale, { cause: 'Error' })],
      hand_back: [held(stale)],
    })
    expect(reply).toMatchObject({ completed: [well.id], moved: [{ id: badly.id, to: 'retryable' }] })
    expect(reply.moved).toHaveLength(1)
    expect(await stateOf(stale.id)).toBe('running')
  })

  test('complete_in_transaction raises, and the business write is gone with it', async () => {
    await db.sql('create table ledger (what text)')
    const job = await into('running')
    await verb(db, 'hand_back', [held(job)])
    await hand.claim({ queue: job.queue })
    const session = await db.session()
    await session.query('begin')
    await session.query(`insert into ledger values ('paid')`)
    // Stands for a hold that came before the job was handed back.
    await session.query(`select set_config('rowlock_held.claim', $1, true)`, [job.claim_id])
    const error = await refusal(
      session.query('select rowlock.complete_in_transaction($1, $2)', [job.id, job.claim_id]),
    )
    expect(error.code).toBe('RL020')
    await session.query('commit')
    expect(await db.value('select count(*)::integer from ledger')).toBe(0)
    expect(await stateOf(job.id)).toBe('running')
  })

  test('complete_in_transaction refuses any transaction but the one that holds', async () => {
    const job = await into('running')
    const complete = 'select rowlock.complete_in_transaction($1, $2)'
    const refused = { code: 'RL020', message: expect.stringMatching(/ended by a statement of its own/) }
    expect(await refusal(db.sql(complete, [job.id, job.claim_id]))).toMatchObject(refused)
    const session = await db.session()
    for (const end of ['commit', 'rollback']) {
      await session.query('begin')
      await session.query('select rowlock.hold($1, $2)', [job.id, job.claim_id])
      await session.query(end)
      await session.query('begin')
      expect(await refusal(session.query(complete, [job.id, job.claim_id]))).toMatchObject(refused)
      await session.query('rollback')
    }
    expect(await stateOf(job.id)).toBe('running')
    await session.query('begin')
    await session.query('select rowlock.hold($1, $2)', [job.id, job.claim_id])
    await session.query(complete, [job.id, job.claim_id])
    await session.query('commit')
    expect(await stateOf(job.id)).toBe('done')
  })

  test('hold refuses a job that has another owner', async () => {
    const job = await into('running')
    expect(await db.refusal('select rowlock.hold($1, $2)', [job.id, randomUUID()])).toBe('RL020')
    expect(await db.refusal('select rowlock.hold($1, $2)', [job.id, job.claim_id])).toBeNull()
  })

  test('the same pair twice in one call ends the job once', async () => {
    const job = await into('running')
    expect(await verb(db, 'complete', [held(job), held(job)])).toEqual([job.id])
    const other = await into('running')
    const moved = await verb(db, 'fail', [held(other, { cause: 'a' }), held(other, { cause: 'b' })])
    expect(moved).toHaveLength(1)
    const attempts = 'select count(*)::integer from rowlock.attempt where job_id = $1'
    expect(await db.value(attempts, [other.id])).toBe(1)
  })
})
