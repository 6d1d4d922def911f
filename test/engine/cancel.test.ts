// A cancel at any moment: its answer agrees with what becomes of the job, and nothing is left behind.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { IS_LONG } from '../support/long.ts'
import {
  endLease,
  enqueue,
  fill,
  held,
  type Row,
  random,
  register,
  seedOf,
  stateOf,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('cancel')
})
afterAll(() => db.drop())

const cancel = (id: string, ...more: string[]): Promise<string> =>
  db.value(`select rowlock.cancel($1, $2, $3)`, [id, more[0] ?? null, more[1] ?? null])
const sweep = () => db.value('select rowlock.sweep()')
const requests = (id: string) =>
  db.value<number>('select count(*)::integer from rowlock.cancel_request where job_id = $1', [id])

describe('a waiting job', () => {
  test('is cancelled at once, by whom and why', async () => {
    const id = await enqueue(db)
    expect(await cancel(id, 'eve', 'a mistake')).toBe('cancelled')
    const [job] = await db.sql('select state, actor, reason from rowlock.job where id = $1', [id])
    expect(job).toEqual({ state: 'cancelled', actor: 'eve', reason: 'a mistake' })
    const [note] = await db.sql('select verb, actor, reason from rowlock.audit where job_id = $1', [id])
    expect(note).toEqual({ verb: 'cancel', actor: 'eve', reason: 'a mistake' })
    expect(await cancel(id)).toBe('already_ended')
  })

  test('that a claim has in flight is waited for, and asked', async () => {
    const id = await enqueue(db)
    const hand = await register(db)
    const session = await db.session()
    await session.query('begin')
    await hand.claim({}, session)
    const answer = cancel(id)
    await untilBlocked(db)
    await session.query('commit')
    expect(await answer).toBe('requested')
    await endLease(db, hand)
    await db.sql('select rowlock.reap()')
    expect(await stateOf(db, id)).toBe('cancelled')
  })

  test('is as it was when the caller’s transaction rolls back', async () => {
    const id = await enqueue(db)
    const session = await db.session()
    await session.query('begin')
    expect((await session.query('select rowlock.cancel($1) as said', [id])).rows[0].said).toBe('cancelled')
    await session.query('rollback')
    expect(await stateOf(db, id)).toBe('queued')
    await cancel(id)
  })
})

describe('a running job', () => {
  const running = async () => {
    const id = await enqueue(db, { queue: 'run' })
    const hand = await register(db)
    return { id, hand, job: (await hand.claim({ queue: 'run' })).jobs[0]! }
  }

  test('is asked: the heartbeat of its worker brings it, and no other’s', async () => {
    const { id, hand } = await running()
    const other = await register(db)
    expect(await cancel(id, 'eve', 'why')).toBe('requested')
    expect((await db.value('select rowlock.heartbeat($1)', [other.id])).cancel).toEqual([])
    expect((await db.value('select rowlock.heartbeat($1)', [hand.id])).cancel).toEqual([
      { id, reason: 'why' },
    ])
  })

  test('that was asked may be asked again: the first reason stays', async () => {
    const { id, job } = await running()
    await cancel(id, 'eve', 'first')
    expect(await cancel(id, 'bob', 'second')).toBe('requested')
    await verb(db, 'fail', [held(job, { cause: 'cancelled' })])
    const [row] = await db.sql('select state, actor, reason from rowlock.job where id = $1', [id])
    expect(row).toEqual({ state: 'cancelled', actor: 'eve', reason: 'first' })
  })

  test.each([
    ['complete', {}, 'done'],
    ['fail', { cause: 'Error' }, 'cancelled'],
    ['fail', { cause: 'Error', permanent: true }, 'cancelled'],
    ['snooze', { after_ms: 0 }, 'cancelled'],
    ['hand_back', {}, 'cancelled'],
    ['abandon', {}, 'cancelled'],
  ])('that was asked and ends by %s %o is %s, and its request gone', async (name, more, state) => {
    const { id, job } = await running()
    await cancel(id)
    await verb(db, name, [held(job, more)])
    expect(await stateOf(db, id)).toBe(state)
    expect(await requests(id)).toBe(0)
  })

  test('does not wait for a caller’s transaction that has asked', async () => {
    const { id, job } = await running()
    const session = await db.session()
    await session.query('begin')
    await session.query('select rowlock.cancel($1)', [id])
    expect(await verb(db, 'complete', [held(job)])).toEqual([id])
    await session.query('commit')
    // The request came too late and is nobody's: a sweep takes it.
    expect(await stateOf(db, id)).toBe('done')
    await sweep()
    expect(await requests(id)).toBe(0)
  })

  test.each([
    ['fail', { cause: 'Error' }, 'retryable'],
    ['snooze', { after_ms: 0 }, 'queued'],
    ['fail', { cause: 'Error', dead: true }, 'dead_letter'],
  ])(
    'that goes back by %s %o while the request is in flight is cancelled by the next sweep',
    async (name, { dead, ...more }: Row, state) => {
      const { id, job } = await running()
      if (dead) await db.sql('update rowlock.running set max_attempts = 1 where id = $1', [id])
      const session = await db.session()
      await session.query('begin')
      await session.query(`select rowlock.cancel($1, 'eve', 'why')`, [id])
      await verb(db, name, [held(job, more)])
      await session.query('commit')
      expect(await stateOf(db, id)).toBe(state)
      expect(await sweep()).toMatchObject({ cancelled: 1 })
      const [row] = await db.sql('select state, actor, reason from rowlock.job where id = $1', [id])
      expect(row).toEqual({ state: 'cancelled', actor: 'eve', reason: dead ? 'discarded: why' : 'why' })
      expect(await requests(id)).toBe(0)
    },
  )

  test('that becomes a dead letter under a request that came after the look is cancelled by a sweep', async () => {
    const { id, job } = await running()
    await db.sql('update rowlock.running set max_attempts = 1 where id = $1', [id])
    // The move stands still in its middle, its snapshot taken.
    await db.sql(`create function pause_here() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(42); return new; end $$`)
    await db.sql(
      'create trigger pause_here before insert on rowlock.attempt for each row execute function pause_here()',
    )
    const session = await db.session()
    await session.query('select pg_advisory_lock(42)')
    const failed = verb(db, 'fail', [held(job, { cause: 'Error' })])
    await untilBlocked(db)
    expect(await cancel(id)).toBe('requested')
    await session.query('select pg_advisory_unlock(42)')
    expect(await failed).toMatchObject([{ id, to: 'dead_letter' }])
    await db.sql('drop function pause_here() cascade')
    expect(await sweep()).toMatchObject({ cancelled: 1 })
    expect(await stateOf(db, id)).toBe('cancelled')
  })

  test('that became a dead letter with a request in flight and is redriven before the sweep runs', async () => {
    const { id, job } = await running()
    await db.sql('update rowlock.running set max_attempts = 1 where id = $1', [id])
    const session = await db.session()
    await session.query('begin')
    await session.query('select rowlock.cancel($1)', [id])
    await verb(db, 'fail', [held(job, { cause: 'Error' })])
    await session.query('commit')
    await db.sql('select rowlock.redrive($1)', [id])
    await sweep()
    expect(await stateOf(db, id)).toBe('queued')
    await cancel(id)
  })
})

test('at any moment between claims and ends: the answer agrees with what becomes of the job', {
  timeout: IS_LONG ? 600_000 : 120_000,
}, async () => {
  const next = random(seedOf('cancel'))
  const count = IS_LONG ? 20_000 : 2_000
  await fill(db, count, {
    id: '1000000 + n',
    queue: "'busy'",
    max_attempts: '3',
    backoff: `'{"type":"fixed","delay_ms":0}'`,
  })
  const said = new Map<string, string>()
  const starts: { id: string; after: string | undefined }[] = []
  let cancelling = 3
  const work = async () => {
    const hand = await register(db)
    const session = await db.session()
    for (let empty = 0; empty < 3; ) {
      const { jobs } = await hand.claim({ queue: 'busy', limit: 15 }, session)
      for (const { id } of jobs) starts.push({ id, after: said.get(id) })
      if (jobs.length === 0 && cancelling === 0) empty++
      const ends = { complete: [] as Row[], fail: [] as Row[], snooze: [] as Row[] }
      for (const job of jobs) {
        const dice = next()
        if (dice < 0.3) ends.complete.push(held(job))
        else if (dice < 0.7) ends.fail.push(held(job, { cause: 'Error' }))
        else ends.snooze.push(held(job, { after_ms: 0 }))
      }
      await session.query('select rowlock.finish($1)', [ends])
    }
  }
  const stop = async (part: number) => {
    const session = await db.session()
    const ids = Array.from({ length: count }, (_, n) => String(1_000_001 + n)).filter(
      (_, n) => n % 3 === part,
    )
    for (let i = ids.length - 1; i > 0; i--) {
      const j = Math.floor(next() * (i + 1))
      ;[ids[i], ids[j]] = [ids[j]!, ids[i]!]
    }
    for (const id of ids.slice(0, count / 5)) {
      const { rows } = await session.query('select rowlock.cancel($1) as said', [id])
      said.set(id, rows[0].said)
    }
    cancelling--
  }
  const maintain = async () => {
    while (cancelling > 0) await sweep()
  }
  await Promise.all([stop(0), stop(1), stop(2), work(), work(), work(), maintain()])
  await sweep()

  expect(said.size).toBe((count / 5) * 3)
  const states = new Map(
    (await db.sql('select id, state from rowlock.job where id > 1000000')).map(({ id, state }) => [
      id,
      state,
    ]),
  )
  const allowed: Record<string, string[]> = {
    cancelled: ['cancelled'],
    requested: ['cancelled', 'done'],
    already_ended: ['done', 'dead_letter', 'cancelled'],
  }
  const ends = [...said].map(([id, answer]) => ({ id, answer, state: states.get(id) }))
  const liars = ends.filter(({ answer, state }) => !allowed[answer]?.includes(state))
  expect(liars).toEqual([])
  expect(states.size).toBe(count)
  // Cancelled means that it never starts afterwards.
  expect(starts.filter(({ after }) => after === 'cancelled' || after === 'already_ended')).toEqual([])
  expect(await db.sql('select job_id from rowlock.cancel_request where job_id > 1000000')).toEqual([])
  expect(new Set(said.values()).size).toBeGreaterThan(1)
})
