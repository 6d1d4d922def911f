// What is seen only where somebody else holds a row, a bound is met, or a flag is up: each of these tests fails when
// one guard is taken out of the SQL (faults/mutants).

import { describe, expect, test } from 'vitest'
import { enqueue, enqueueMany, held, type Row, stateOf, untilBlocked, verb } from '../engine/by-hand.ts'
import { call, claimAll, db, hand, impatient, other, prepare } from './beside.ts'

prepare()

/** Somebody else holds this row. */
async function hold(table: string, column: string, value: string): Promise<void> {
  await other.query('begin')
  await other.query(`select from rowlock.${table} where ${column} = $1 for update`, [value])
}
const suspect = (id: string, since = "interval '0'") =>
  db.sql(`update rowlock.waiting set losses = 2, available_at = available_at - ${since} where id = $1`, [id])

describe('a claim', () => {
  test('passes a suspect by that somebody holds at the head of its line', async () => {
    const { ids } = await enqueueMany(db, [{}, {}])
    await suspect(ids[0]!)
    await hold('waiting', 'id', ids[0]!)
    expect((await claimAll(['k'], impatient)).ids).toEqual([ids[1]])
  })

  test('passes a suspect by that somebody holds though it has waited longest', async () => {
    const { ids } = await enqueueMany(db, [{}, {}])
    await suspect(ids[1]!, "interval '1 hour'")
    await hold('waiting', 'id', ids[1]!)
    // One claim in four looks for it first.
    for (let n = 0; n < 40; n++) {
      const { jobs } = await claimAll(['k'], impatient)
      expect(jobs.map(({ id }) => id)).toEqual([ids[0]])
      await verb(
        db,
        'hand_back',
        jobs.map((job) => held(job)),
      )
    }
  })

  test('takes no suspect of a kind that it did not name', async () => {
    const id = await enqueue(db, {}, 'foreign')
    await suspect(id, "interval '1 hour'")
    for (let n = 0; n < 40; n++) expect((await claimAll()).ids).toEqual([])
  })

  test.each(['at the head of its line', 'that waited long'])('runs no expired suspect %s', async (where) => {
    const id = await enqueue(db, { expires_in: '0' })
    await suspect(id, where === 'that waited long' ? "interval '1 hour'" : "interval '0'")
    for (let n = 0; n < 40; n++) expect((await claimAll()).ids).toEqual([])
    expect(await stateOf(db, id)).toBe('queued')
  })

  test('says when the first of all its lines is due', async () => {
    await enqueueMany(db, [
      { priority: 5, delay: '1 hour' },
      { priority: 0, delay: '1 minute' },
      { priority: -5, delay: '2 hours' },
    ])
    const { next_due, now } = await claimAll()
    expect(next_due! - now).toBeGreaterThan(0)
    expect(next_due! - now).toBeLessThanOrEqual(60_000)
  })

  test('lowers the flag of a queue that yields, and keeps the others up', async () => {
    await call(`rowlock.sleep($1, array['default', 'empty'], now() + interval '1 hour')`, [hand.id])
    await enqueue(db)
    const wants = ['default', 'empty'].map((queue) => ({ queue, limit: 1, kinds: ['k'] }))
    await call(`rowlock.claim($1, $2, now() + interval '2 hours')`, [hand.id, JSON.stringify(wants)])
    expect(await db.sql('select queue from rowlock.sleeper')).toEqual([{ queue: 'empty' }])
  })

  test('of a suspect says which queue yielded, and lowers its flag', async () => {
    await suspect(await enqueue(db))
    await call(`rowlock.sleep($1, array['default'], now() + interval '1 hour')`, [hand.id])
    const wants = JSON.stringify([{ queue: 'default', limit: 5, kinds: ['k'] }])
    const reply = await call(`rowlock.claim($1, $2, now() + interval '2 hours')`, [hand.id, wants])
    expect(reply).toMatchObject({ alone: true, found: { default: 1 } })
    expect(await db.sql('select from rowlock.sleeper')).toEqual([])
  })

  test('keeps a large input out of the rows that move', async () => {
    const id = await enqueue(db)
    const [large] = (await enqueueMany(db, [{ input: 'x'.repeat(5_000) }])).ids
    const inputs = await db.sql('select id::text, input is null as away from rowlock.waiting order by id')
    expect(inputs).toEqual([
      { id, away: false },
      { id: large, away: true },
    ])
  })
})

describe('expire', () => {
  test('passes by what somebody holds, and stops at its limit', async () => {
    const { ids } = await enqueueMany(db, [{ expires_in: '0' }, { expires_in: '0' }, { expires_in: '0' }])
    await hold('waiting', 'id', ids[0]!)
    expect(await call('rowlock.expire(1)', [], impatient as never)).toHaveLength(1)
    expect(await call('rowlock.expire()', [], impatient as never)).toHaveLength(1)
    expect(await stateOf(db, ids[0]!)).toBe('queued')
  })
})

describe('an end', () => {
  const running = async (options: Record<string, unknown> = {}) => {
    const id = await enqueue(db, options)
    return (await claimAll()).jobs.find((job) => job.id === id)!
  }
  const fail = (job: Row, more: Record<string, unknown> = {}) =>
    verb(db, 'fail', [held(job, { cause: 'Error', ...more })])
  const dueIn = (id: string) =>
    db.value<number>(
      'select extract(epoch from available_at - clock_timestamp())::float from rowlock.waiting where id = $1',
      [id],
    )

  test('by the tenth failure makes a dead letter where nothing else is said', async () => {
    const id = await enqueue(db, { backoff: { type: 'fixed', delay_ms: 0 } })
    for (let n = 1; n <= 10; n++) {
      expect(await stateOf(db, id)).not.toBe('dead_letter')
      await fail((await claimAll()).jobs[0])
    }
    expect(await stateOf(db, id)).toBe('dead_letter')
  })

  test('with a delay below 0 is due at once, and never before now', async () => {
    const job = await running()
    await fail(job, { after_ms: -3_600_000 })
    expect(await dueIn(job.id)).toBeGreaterThan(-60)
  })

  test('with a delay beyond the calendar is due in ten years', async () => {
    const job = await running()
    await verb(db, 'snooze', [held(job, { after_ms: 1e300 })])
    expect(await dueIn(job.id)).toBeLessThan(3651 * 86_400)
  })

  test('by a snooze that says nothing is due at once', async () => {
    const job = await running({ available_at: '2026-01-01T00:00:00Z' })
    await verb(db, 'snooze', [held(job)])
    expect(Math.abs(await dueIn(job.id))).toBeLessThan(60)
  })

  test('that did not see a request to cancel leaves it to the sweep', async () => {
    const job = await running()
    await hold('running', 'id', job.id)
    const failed = fail(job)
    await untilBlocked(db)
    // The end looked before, and is about to give up what ended jobs leave behind.
    expect(await call('rowlock.cancel($1)', [job.id])).toBe('requested')
    await other.query('rollback')
    expect((await failed)[0]).toMatchObject({ to: 'retryable' })
    await call('rowlock.sweep()')
    expect(await stateOf(db, job.id)).toBe('cancelled')
  })

  test('of many answers each once, though a missing day made it begin anew', async () => {
    await call(`rowlock.set_queue('brief', '{"retention_days": 1}')`)
    await enqueueMany(db, [{}, { queue: 'brief' }])
    const jobs = (await hand.claim([{}, { queue: 'brief' }])).jobs
    const [kept, brief] = ['default', 'brief'].map((queue) => jobs.find((job) => job.queue === queue)!)
    await db.sql(`do $$ declare v_name text; begin
      for v_name in select d.name from rowlock.day_tables(clock_timestamp(), 1) as d where d.class = 1 loop
        execute format('drop table rowlock.%I', v_name);
      end loop;
    end $$`)
    const outcomes = { fail: [held(kept!, { cause: 'Error' })], snooze: [held(brief!, { after_ms: 0 })] }
    const { moved } = await call('rowlock.finish($1)', [JSON.stringify(outcomes)])
    expect(moved.map(({ id }: Row) => id)).toEqual([kept!.id, brief!.id])
  })

  test('waits as its backoff says for just this failure', async () => {
    const job = await running({ backoff: { type: 'list', delays_ms: [60_000, 7_200_000] } })
    await fail(job)
    expect(await dueIn(job.id)).toBeLessThanOrEqual(60)
    await db.sql('update rowlock.waiting set available_at = now()')
    await fail((await claimAll()).jobs[0])
    expect(await dueIn(job.id)).toBeGreaterThan(7_000)
  })

  test('spreads the delays of jobs that failed together', async () => {
    await enqueueMany(
      db,
      Array.from({ length: 10 }, () => ({})),
    )
    const { jobs } = await claimAll()
    await verb(
      db,
      'fail',
      jobs.map((job) => held(job, { cause: 'Error' })),
    )
    await db.sql('update rowlock.waiting set available_at = now()')
    const again = (await claimAll()).jobs
    await verb(
      db,
      'fail',
      again.map((job) => held(job, { cause: 'Error' })),
    )
    const due = await db.value<number>('select count(distinct available_at)::integer from rowlock.waiting')
    expect(due).toBeGreaterThan(5)
  })

  test('in a queue without history keeps the input of a dead letter, and of nothing else', async () => {
    await call(`rowlock.set_queue('default', '{"retention_days": 0}')`)
    const large = { input: 'x'.repeat(5_000) }
    await enqueueMany(db, [large, { ...large, max_attempts: 1 }, large])
    const { jobs } = await claimAll()
    await fail(jobs[0], { permanent: true })
    await fail(jobs[1])
    await verb(db, 'complete', [held(jobs[2]!)])
    expect(await db.sql('select job_id::text as id from rowlock.payload')).toEqual([{ id: jobs[1]!.id }])
  })

  test('keeps a start that is known', async () => {
    const [one, two] = [await running(), await running()]
    await verb(
      db,
      'start',
      [one!, two!].map((job) => held(job)),
    )
    const known = () => db.sql(`select id::text, started_at from rowlock.job order by id`)
    const before = await known()
    await verb(db, 'start', [held(two!, { ago_ms: 0 })])
    await verb(db, 'complete', [held(one!, { ran_ms: 0 })])
    expect(await known()).toEqual(before)
  })
})

describe('an end in a transaction', () => {
  test('cannot begin under an older claim', async () => {
    await enqueue(db)
    const [old] = (await claimAll()).jobs
    await verb(db, 'hand_back', [held(old!)])
    await claimAll()
    expect(await db.refusal('select rowlock.hold($1, $2)', [old!.id, old!.claim_id])).toBe('RL020')
  })

  test('is refused to who does not hold', async () => {
    await enqueue(db)
    const [job] = (await claimAll()).jobs
    const text = 'select rowlock.complete_in_transaction($1, $2)'
    expect(await db.refusal(text, [job!.id, job!.claim_id])).toBe('RL020')
    expect(await stateOf(db, job!.id)).toBe('running')
  })
})

describe('what becomes live again', () => {
  test('is durable though the database is set not to', async () => {
    await enqueueMany(db, [{ max_attempts: 1 }, {}])
    const { jobs } = await claimAll()
    await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    await verb(db, 'complete', [held(jobs[1]!)])
    for (const [n, name] of ['redrive', 'retry'].entries()) {
      await other.query('begin')
      await other.query('set local synchronous_commit = off')
      await other.query(`select rowlock.${name}($1)`, [jobs[n]!.id])
      expect((await other.query('show synchronous_commit')).rows[0].synchronous_commit).toBe('on')
      await other.query('commit')
    }
  })
})

describe('operators', () => {
  test('leave no request behind for a job that ended while they asked', async () => {
    await enqueueMany(db, [{}, {}])
    const { jobs, ids } = await claimAll()
    await other.query('begin')
    await other.query('insert into rowlock.cancel_request (job_id, requested_at) values ($1, now())', [
      ids[1],
    ])
    const asked = db.sql('select answer from rowlock.cancel_many($1)', [ids])
    // The first has been asked, and the second waits for whoever asks it at the same time.
    await untilBlocked(db)
    await verb(db, 'complete', [held(jobs[0]!)])
    await other.query('rollback')
    expect(await asked).toEqual([{ answer: 'already_ended' }, { answer: 'requested' }])
    expect(await db.sql('select job_id::text as id from rowlock.cancel_request')).toEqual([{ id: ids[1] }])
  })

  test('change a thousand jobs a call at the most', async () => {
    const ids = Array.from({ length: 1_001 }, (_, n) => n)
    expect(await db.refusal('select rowlock.cancel_many($1)', [ids])).toBe('RL001')
  })

  test('are told which priorities there are', async () => {
    const id = await enqueue(db)
    for (const priority of [-11, 11]) {
      expect(await db.refusal('select rowlock.prioritize($1, $2)', [id, priority])).toBe('RL001')
    }
    await call('rowlock.prioritize($1, 10)', [id])
  })
})

describe('start', () => {
  test('passes a row by that somebody has locked', async () => {
    const id = await enqueue(db)
    const [job] = (await claimAll()).jobs
    await hold('running', 'id', id)
    expect(await verb(db, 'start', [held(job!)], impatient)).toEqual([])
  })
})

describe('a key that another job has', () => {
  test('outlives the end of a job that had it before', async () => {
    await enqueue(db, { dedupe_key: 'a' })
    const [job] = (await claimAll()).jobs
    await db.sql('update rowlock.dedupe set job_id = 77')
    await verb(db, 'complete', [held(job!)])
    expect(await db.sql('select job_id::text as id from rowlock.dedupe')).toEqual([{ id: '77' }])
  })
})

describe('a key that is kept until an instant', () => {
  test('outlives the end of its job', async () => {
    const id = await enqueue(db, { dedupe_key: 'a' })
    await db.sql(`update rowlock.dedupe set until = now() + interval '1 hour'`)
    await verb(db, 'complete', [held((await claimAll()).jobs[0]!)])
    expect(await db.sql('select job_id::text as id from rowlock.dedupe')).toEqual([{ id }])
  })
})
