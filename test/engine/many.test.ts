// One call for many jobs: an answer for each, whatever moves meanwhile, and nobody waits for what others hold.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BULK_VERBS, type BulkVerb } from '../../src/ground/states.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import {
  enqueue,
  enqueueMany,
  type Hand,
  held,
  type Row,
  type Runner,
  refusal,
  register,
  stateOf,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('many')
  hand = await register(db)
})
afterAll(() => db.drop())

interface Answer {
  readonly id: string | null
  readonly answer: string
  readonly detail: Row
}
const ARGS = `$1::bigint[], %p_actor => $2, p_reason => $3, p_filter => $4::jsonb`
async function many(
  name: BulkVerb,
  ids: readonly (string | null)[],
  filter: object | null = null,
  through: Runner = db.pool,
  more = '',
): Promise<Answer[]> {
  const args = ARGS.replace('%', name === 'prioritize' ? '5, ' : '') + more
  const values = [ids, 'eve', 'why', filter === null ? null : JSON.stringify(filter)]
  return (await through.query(`select * from rowlock.${name}_many(${args})`, values)).rows
}
const words = (answers: Answer[]) => answers.map(({ answer }) => answer)
const audit = (ids: readonly string[]) =>
  db.sql(
    'select job_id, verb, actor, reason, detail from rowlock.audit where job_id = any ($1) order by id',
    [ids],
  )

let queues = 0
const fresh = () => `q${++queues}`

/** Dead letters, alone in a queue. */
async function dead(options: Record<string, unknown>[]): Promise<string[]> {
  const ids: string[] = []
  for (const one of options) {
    const queue = fresh()
    await enqueue(db, { max_attempts: 1, ...one, queue })
    const { jobs } = await hand.claim({ queue })
    await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    ids.push(jobs[0]!.id)
    if (one.queue)
      await db.sql('update rowlock.dead_letter set queue = $2 where id = $1', [jobs[0]!.id, one.queue])
  }
  return ids
}

async function done(options: Record<string, unknown> = {}): Promise<string> {
  const queue = fresh()
  await enqueue(db, { ...options, queue })
  const { jobs } = await hand.claim({ queue })
  await verb(db, 'complete', [held(jobs[0]!)])
  if (options.queue)
    await db.sql('update rowlock.finished set queue = $2 where id = $1', [jobs[0]!.id, options.queue])
  return jobs[0]!.id
}

/** A job in a state that the verb applies to, and the row that a session of another locks. */
async function subject(name: BulkVerb): Promise<{ id: string; table: string }> {
  if (name === 'redrive' || name === 'discard') return { id: (await dead([{}]))[0]!, table: 'dead_letter' }
  if (name === 'retry' || name === 'purge') return { id: await done(), table: 'finished' }
  return { id: await enqueue(db, { queue: fresh(), delay: '1 hour' }), table: 'waiting' }
}

describe('a call', () => {
  test('answers each id in its order, the same id alike, and no id at all', async () => {
    const { ids } = await enqueueMany(db, [{}, {}])
    const [a, b] = ids as [string, string]
    expect(await many('cancel', [b, '999999999', a, null, b])).toEqual([
      { id: b, answer: 'cancelled', detail: null },
      { id: '999999999', answer: 'not_found', detail: null },
      { id: a, answer: 'cancelled', detail: null },
      { id: null, answer: 'not_found', detail: null },
      { id: b, answer: 'cancelled', detail: null },
    ])
    expect(await audit(ids)).toEqual(
      [a, b].map((job_id) => ({ job_id, verb: 'cancel', actor: 'eve', reason: 'why', detail: null })),
    )
    expect(await many('cancel', [])).toEqual([])
  })

  test.each(BULK_VERBS)('%s notes what it changed, with its detail, and nothing else', async (name) => {
    const { id } = await subject(name)
    const [answer] = await many(name, [id, '999999999'])
    const detail = name === 'prioritize' ? { priority: 5 } : answer!.detail
    expect(await audit([id, '999999999'])).toEqual([
      { job_id: id, verb: name, actor: 'eve', reason: 'why', detail },
    ])
  })

  test.each([
    ['no ids', 'null', 'null', 'ids'],
    ['too many ids', 'array(select generate_series(1, 1001))', 'null', 'ids'],
    ['a filter that is none', `'{}'`, `'{"quueue": "a"}'`, 'quueue'],
  ])('with %s is refused', async (_, ids, filter, path) => {
    const text = `select * from rowlock.cancel_many(${ids}, null, null, ${filter})`
    expect(await refusal(db.sql(text))).toMatchObject({ code: 'RL001', detail: { path } })
  })

  test.each(BULK_VERBS)('%s needs READ COMMITTED', async (name) => {
    const session = await db.session()
    await session.query('begin isolation level repeatable read')
    expect(await refusal(many(name, ['1'], null, session))).toMatchObject({ code: 'RL030' })
    await session.query('rollback')
  })
})

describe('a row that somebody holds', () => {
  test.each(BULK_VERBS.filter((name) => name !== 'retry'))(
    'is busy for %s; the others are changed',
    async (name) => {
      const [taken, free] = [await subject(name), await subject(name)]
      const [holder, session] = [await db.session(), await db.session()]
      await holder.query('begin')
      await holder.query(`select from rowlock.${taken.table} where id = $1 for update`, [taken.id])
      await session.query(`set lock_timeout = '2s'`)
      const answers = await many(name, [taken.id, free.id], null, session)
      expect(answers[0]).toEqual({ id: taken.id, answer: 'busy', detail: null })
      expect(answers[1]!.answer).not.toBe('busy')
      await holder.query('rollback')
      expect(await audit([taken.id])).toEqual([])
      expect(words(await many(name, [taken.id]))).toEqual([answers[1]!.answer])
    },
  )

  test('does not hinder a retry: history is only read', async () => {
    const { id } = await subject('retry')
    const holder = await db.session()
    await holder.query('begin')
    await holder.query('select from rowlock.finished where id = $1 for update', [id])
    expect(words(await many('retry', [id]))).toEqual(['retried'])
    await holder.query('rollback')
  })

  test('since a claim is in flight is met in a later round, where it runs', async () => {
    const session = await db.session()
    for (let tries = 0; ; tries++) {
      const queue = fresh()
      const { ids } = await enqueueMany(db, [{ queue }, { queue, delay: '1 hour' }])
      await session.query('begin')
      await hand.claim({ queue }, session)
      const [answers] = await Promise.all([many('cancel', ids), session.query('commit')])
      expect(answers[1]!.answer).toBe('cancelled')
      expect(['requested', 'busy']).toContain(answers[0]!.answer)
      const asked = await db.sql('select job_id from rowlock.cancel_request where job_id = $1', [ids[0]])
      expect(asked).toHaveLength(answers[0]!.answer === 'requested' ? 1 : 0)
      if (answers[0]!.answer === 'requested') return
      // How often both meet in this way is up to the machine.
      expect(tries).toBeLessThan(2_000)
    }
  })
})

describe('a filter', () => {
  test.each(BULK_VERBS)('is judged by %s under the lock: what changed since is left alone', async (name) => {
    const { id, table } = await subject(name)
    const [holder, session] = [await db.session(), await db.session()]
    await holder.query('begin')
    await holder.query(`update rowlock.${table} set kind = 'other' where id = $1`, [id])
    // A retry locks nothing: it judges in the look that copies.
    if (name === 'retry') await holder.query('commit')
    const answers = many(name, [id], { kind: 'k' }, session, name === 'retry' ? '' : ', p_wait => true')
    if (name !== 'retry') {
      await untilBlocked(db)
      await holder.query('commit')
    }
    expect(await answers).toEqual([{ id, answer: 'changed', detail: null }])
    expect(await audit([id])).toEqual([])
    expect(words(await many(name, [id], { kind: 'other' }))).not.toEqual(['changed'])
  })

  test('that a job fits only while it waits does not ask one that runs', async () => {
    const queue = fresh()
    const { ids } = await enqueueMany(db, [{ queue }])
    await hand.claim({ queue })
    expect(words(await many('cancel', ids, { state: 'queued' }))).toEqual(['changed'])
    expect(await db.sql('select from rowlock.cancel_request where job_id = $1', [ids[0]])).toEqual([])
    expect(words(await many('cancel', ids, { state: 'running' }))).toEqual(['requested'])
  })
})

describe('dedupe keys', () => {
  const shared = async (key: string) => {
    const queue = fresh()
    const ids = await dead([
      { dedupe_key: key, queue },
      { dedupe_key: key, queue },
    ])
    return { queue, ids }
  }
  const holder = (queue: string) =>
    db.value<string>('select job_id from rowlock.dedupe where queue = $1 and until is null', [queue])

  test('of two dead letters with one key in one call the first by id has it', async () => {
    const { queue, ids } = await shared('a')
    const answers = await many('redrive', [...ids].reverse())
    expect(answers).toEqual([
      { id: ids[1], answer: 'dedupe_key_taken', detail: { holder: ids[0] } },
      { id: ids[0], answer: 'redriven', detail: null },
    ])
    expect(await holder(queue)).toBe(ids[0])
    expect(await stateOf(db, ids[1]!)).toBe('dead_letter')
  })

  test('of two ended jobs with one key in one call the first by id has it', async () => {
    const queue = fresh()
    const ids = [await done({ queue, dedupe_key: 'b' }), await done({ queue, dedupe_key: 'b' })]
    const [second, first] = await many('retry', [...ids].reverse())
    expect(first).toMatchObject({ id: ids[0], answer: 'retried' })
    const made = first!.detail.new_job_id
    expect(second).toEqual({ id: ids[1], answer: 'dedupe_key_taken', detail: { holder: made } })
    expect(await holder(queue)).toBe(made)
    expect(words(await many('retry', ids))).toEqual(['dedupe_key_taken', 'dedupe_key_taken'])
  })

  test('that a live job has are named with it, and kept by it', async () => {
    const { queue, ids } = await shared('c')
    const live = await enqueue(db, { queue, dedupe_key: 'c' })
    expect(await many('redrive', ids)).toEqual(
      ids.map((id) => ({ id, answer: 'dedupe_key_taken', detail: { holder: live } })),
    )
    expect(await holder(queue)).toBe(live)
  })

  test('of a dead letter that could not be had are given back', async () => {
    const queue = fresh()
    const [id] = await dead([{ dedupe_key: 'd', queue }])
    const session = await db.session()
    await session.query('begin')
    await session.query('select from rowlock.dead_letter where id = $1 for update', [id])
    expect(words(await many('redrive', [id!]))).toEqual(['busy'])
    await session.query('rollback')
    expect(await holder(queue)).toBeUndefined()
    expect(words(await many('redrive', [id!]))).toEqual(['redriven'])
  })

  test('of a job that somebody else has put back at the same time stay with it', async () => {
    const queue = fresh()
    const [id] = await dead([{ dedupe_key: 'e', queue }])
    const session = await db.session()
    await session.query('begin')
    await session.query('select rowlock.redrive($1)', [id])
    const answers = many('redrive', [id!], null, db.pool, ', p_wait => true')
    await untilBlocked(db)
    await session.query('commit')
    expect(await answers).toEqual([{ id, answer: 'wrong_state', detail: { state: 'queued' } }])
    expect(await holder(queue)).toBe(id)
  })

  test('are given up by jobs that are cancelled', async () => {
    const queue = fresh()
    const { ids } = await enqueueMany(db, [
      { queue, dedupe_key: 'f' },
      { queue, dedupe_key: 'g' },
    ])
    expect(words(await many('cancel', ids))).toEqual(['cancelled', 'cancelled'])
    expect(await holder(queue)).toBeUndefined()
  })
})

describe('what jobs leave behind', () => {
  const large = 'x'.repeat(9_000)
  const bodies = (ids: readonly string[]) =>
    db.value<number>('select count(*)::integer from rowlock.payload where job_id = any ($1)', [ids])
  const store = async (queue: string) =>
    (
      await db.value('select rowlock.enqueue_many($1)', [
        JSON.stringify([{ kind: 'k', queue, input: large, max_attempts: 1 }]),
      ])
    ).ids[0] as string

  test('a large input is copied for a retry, and goes with a purge', async () => {
    const id = await store(fresh())
    await many('cancel', [id])
    const [{ detail }] = (await many('retry', [id])) as [Answer]
    const input = 'select input from rowlock.job where id = $1'
    expect(await db.value(input, [detail.new_job_id])).toBe(large)
    expect(words(await many('purge', [id]))).toEqual(['purged'])
    expect(await bodies([id])).toBe(0)
    expect(await db.value(input, [detail.new_job_id])).toBe(large)
  })

  test('a job whose large input went with its day is retried by nobody', async () => {
    const id = await store(fresh())
    await many('cancel', [id])
    await db.sql('delete from rowlock.payload where job_id = $1', [id])
    expect(words(await many('retry', [id]))).toEqual(['not_found'])
    expect(await db.refusal('select rowlock.retry($1)', [id])).toBe('RL010')
  })

  test.each(['cancel', 'discard'] as const)('%s leaves nothing in a queue without history', async (name) => {
    const queue = fresh()
    await db.sql(`select rowlock.set_queue($1, '{"retention_days": 0}')`, [queue])
    const id = await store(queue)
    if (name === 'discard') {
      const { jobs } = await hand.claim({ queue })
      await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    }
    await many(name, [id])
    expect(await stateOf(db, id)).toBeUndefined()
    expect(await bodies([id])).toBe(0)
  })

  test.each(['cancel', 'discard'] as const)('%s makes a day of history that is missing', async (name) => {
    const { id } = await subject(name)
    const [{ day }] = await db.sql(`select to_char(rowlock.now() at time zone 'UTC', 'YYYYMMDD') as day`)
    await db.sql(`alter table rowlock.finished_7_${day} rename to aside_${name}`)
    await db.sql(`alter table rowlock.finished detach partition rowlock.aside_${name}`)
    await many(name, [id])
    expect(await stateOf(db, id)).toBe('cancelled')
  })
})

test('workers are told once: those who sleep for each queue, those who run for all of their jobs', async () => {
  const [a, b] = [fresh(), fresh()]
  const sleeper = await register(db)
  await db.sql(`select rowlock.sleep($1, $2, now() + interval '1 day')`, [sleeper.id, [a, b]])
  const queued = [a, a, b, b].map((queue) => ({ queue, delay: '1 hour' }))
  const { ids } = await enqueueMany(db, queued)
  const session = await db.session()
  const heard: string[] = []
  session.on('notification', ({ payload }) => heard.push(payload!))
  await session.query(`select set_config('search_path', '', false)`)
  await session.query(`listen "${await db.value('select rowlock.channel()')}"`)
  expect(words(await many('run_now', ids))).toEqual(['due', 'due', 'due', 'due'])
  const runner = await register(db)
  await runner.claim([{ queue: a }, { queue: b }])
  expect(words(await many('cancel', ids))).toEqual(Array(4).fill('requested'))
  await session.query('select 1')
  expect(heard.sort()).toEqual([`cancel ${runner.id}`, `queue ${a}`, `queue ${b}`])
})
