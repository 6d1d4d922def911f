// A guard that is taken out of the SQL must be missed: each probe holds on the sound function and fails on its mutant.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import {
  endLease,
  enqueue,
  enqueueMany,
  held,
  type Row,
  refusal,
  register,
  untilBlocked,
  verb,
} from './by-hand.ts'

/** Throws, or answers something else than true, when the guard is not there. */
type Probe = (db: TestRowlock) => Promise<boolean>

const STALE = (name: string): Probe => {
  return async (db) => {
    const hand = await register(db)
    await enqueue(db)
    const [old] = (await hand.claim()).jobs
    await verb(db, 'hand_back', [held(old!)])
    await hand.claim()
    return (await verb(db, name, [held(old!)])).length === 0
  }
}

const PASSED_BY: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{}, {}])
  const [other, session] = [await db.session(), await db.session()]
  await other.query('begin')
  await other.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
  await session.query(`set lock_timeout = '100ms'`)
  const claim = await (await register(db)).claim({}, session)
  return claim.ids.join() === ids[1]
}

const LEASED: Probe = async (db) => {
  await enqueue(db)
  const hand = await register(db)
  await endLease(db, hand)
  return (await refusal(hand.claim())).code === 'RL020'
}

const OLDEST_FIRST: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{ available_at: '2026-01-02' }, { available_at: '2026-01-01' }])
  return (await (await register(db)).claim({ limit: 1 })).ids.join() === ids[1]
}

const WITHIN_LIMIT: Probe = async (db) => {
  await enqueueMany(db, [{}, {}, {}])
  return (await (await register(db)).claim({ limit: 2 })).jobs.length === 2
}

const ALONE: Probe = async (db) => {
  await enqueueMany(db, [{}, {}])
  await db.sql('update rowlock.waiting set losses = 2 where id = (select max(id) from rowlock.waiting)')
  return (await (await register(db)).claim()).jobs.length === 1
}

const RAISES: Probe = async (db) => {
  const hand = await register(db)
  await enqueue(db)
  const [job] = (await hand.claim()).jobs
  await verb(db, 'hand_back', [held(job!)])
  const claimed = `set_config('rowlock_held.claim', $2::text, true)`
  const text = `select ${claimed}, rowlock.complete_in_transaction($1, $2::text::uuid)`
  return (await refusal(db.sql(text, [job!.id, job!.claim_id]))).code === 'RL020'
}

const NOT_HELD: Probe = async (db) => {
  const hand = await register(db)
  await enqueue(db)
  const [job] = (await hand.claim()).jobs
  const text = 'select rowlock.complete_in_transaction($1, $2)'
  return (await refusal(db.sql(text, [job!.id, job!.claim_id]))).code === 'RL020'
}

const SESSION_LIVES: Probe = async (db) => {
  const hand = await register(db)
  await enqueue(db)
  const [job] = (await hand.claim()).jobs
  const [holder, reaper] = [await db.session(), await db.session()]
  await holder.query('begin')
  await holder.query('select rowlock.hold($1, $2)', [job!.id, job!.claim_id])
  await endLease(db, hand)
  await reaper.query(`set lock_timeout = '100ms'`)
  return (await reaper.query('select rowlock.reap() as moved')).rows[0].moved.length === 0
}

const KEYS_IN_ORDER: Probe = async (db) => {
  const [holder, waiter, third] = [await db.session(), await db.session(), await db.session()]
  await holder.query('begin')
  await enqueueMany(db, [{ dedupe_key: 'a' }], holder)
  const waits = enqueueMany(db, [{ dedupe_key: 'c' }, { dedupe_key: 'a' }], waiter)
  await untilBlocked(db)
  // Whoever waits for a holds nothing that comes after it.
  await third.query(`set lock_timeout = '100ms'`)
  const free = await enqueueMany(db, [{ dedupe_key: 'c' }], third).then(
    () => true,
    () => false,
  )
  await holder.query('rollback')
  await waits
  return free
}

const OWN_KEY: Probe = async (db) => {
  const hand = await register(db)
  await enqueue(db, { dedupe_key: 'a' })
  const [job] = (await hand.claim()).jobs
  await db.sql('update rowlock.dedupe set job_id = 77')
  await verb(db, 'complete', [held(job!)])
  return (await db.sql('select from rowlock.dedupe')).length === 1
}

const ASKED_TWICE: Probe = async (db) => {
  const session = await db.session()
  await session.query('begin isolation level repeatable read')
  const hand = await register(db)
  return (await refusal(hand.claim({}, session))).code === 'RL030'
}

const STEP = `select rowlock.import_jobs('k', 0, 'd0', '[{"kind": "k", "input": 1}]', 1, 'd1') as step`
const begun = (db: TestRowlock) =>
  db.sql(`delete from rowlock.import; select rowlock.begin_import('k', 'd0')`)

const ONE_STEP: Probe = async (db) => {
  await begun(db)
  const [first, second] = [await db.value(STEP), await db.value(STEP)]
  return first.accepted && !second.accepted && (await db.sql('select from rowlock.waiting')).length === 1
}

const SAME_FILE: Probe = async (db) => {
  await begun(db)
  return (await db.refusal(STEP.replace('d0', 'other'))) === 'RL080'
}

const TWO_IMPORT: Probe = async (db) => {
  await begun(db)
  const [one, other] = [await db.session(), await db.session()]
  await one.query('begin')
  await one.query(STEP)
  const waits = other.query(STEP)
  await untilBlocked(db)
  await one.query('commit')
  const { rows } = await waits
  return !rows[0].step.accepted && (await db.sql('select from rowlock.waiting')).length === 1
}

/** A session changes the job between the look of a call and its lock. */
const JUDGED_AGAIN: Probe = async (db) => {
  const id = await enqueue(db)
  const [holder, session] = [await db.session(), await db.session()]
  await holder.query('begin')
  await holder.query(`update rowlock.waiting set kind = 'other'`)
  const text = `select answer from rowlock.cancel_many($1, p_filter => '{"kind":"k"}', p_wait => true)`
  const answers = session.query(text, [[id]])
  await untilBlocked(db)
  await holder.query('commit')
  return (await answers).rows[0].answer === 'changed'
}

const WAITS_FOR_NOBODY: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{}, {}])
  const [holder, session] = [await db.session(), await db.session()]
  await holder.query('begin')
  await holder.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
  await session.query(`set lock_timeout = '100ms'`)
  const { rows } = await session.query('select answer from rowlock.cancel_many($1)', [ids])
  return rows.map(({ answer }) => answer).join() === 'busy,cancelled'
}

const bulk = async (db: TestRowlock, verb: string, args: object = {}) => {
  const text = `select rowlock.begin_bulk($1, '{"all":true}', $2) ->> 'id'`
  const id = await db.value<string>(text, [verb, args])
  return () => db.value<Row>('select rowlock.run_bulk($1, 2)', [id])
}

const EACH_ONCE: Probe = async (db) => {
  await enqueueMany(db, [{}, {}, {}])
  const step = await bulk(db, 'prioritize', { priority: 1 })
  await step()
  return (await step()).changed === 3
}

const NOT_WHAT_IT_MADE: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{}, {}, {}])
  await db.sql('select rowlock.cancel(id) from unnest($1::bigint[]) as id', [ids])
  const step = await bulk(db, 'retry')
  const { answers } = await step()
  for (const [, , detail] of answers) await db.sql('select rowlock.cancel($1)', [detail.new_job_id])
  return (await step()).changed === 3
}

const BUSY_AGAIN: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{}, {}])
  const holder = await db.session()
  const step = await bulk(db, 'cancel')
  await holder.query('begin')
  await holder.query('select from rowlock.waiting where id = $1 for update', [ids[0]])
  await step()
  await holder.query('rollback')
  return (await step()).changed === 2
}

const ASKED_IF_IT_RUNS: Probe = async (db) => {
  const id = await enqueue(db)
  const hand = await register(db)
  await hand.claim()
  const { rows } = await db.pool.query(
    `select answer from rowlock.cancel_many($1, p_filter => '{"state":"queued"}')`,
    [[id]],
  )
  return rows[0].answer === 'changed' && (await db.sql('select from rowlock.cancel_request')).length === 0
}

const KEY_OF_ANOTHER: Probe = async (db) => {
  const id = await enqueue(db, { dedupe_key: 'a', max_attempts: 1 })
  const [job] = (await (await register(db)).claim()).jobs
  await verb(db, 'fail', [held(job!, { cause: 'Error' })])
  const session = await db.session()
  await session.query('begin')
  await session.query('select rowlock.redrive($1)', [id])
  const answers = db.sql('select * from rowlock.redrive_many($1)', [[id]])
  await untilBlocked(db)
  await session.query('commit')
  await answers
  return (await db.sql('select from rowlock.dedupe')).length === 1
}

const FIRST_HAS_THE_KEY: Probe = async (db) => {
  const { ids } = await enqueueMany(db, [{ max_attempts: 1 }, { max_attempts: 1 }])
  const { jobs } = await (await register(db)).claim()
  await verb(
    db,
    'fail',
    jobs.map((job) => held(job, { cause: 'Error' })),
  )
  await db.sql(`update rowlock.dead_letter set dedupe_key = 'a'`)
  await db.sql('select * from rowlock.redrive_many($1)', [ids])
  return (await db.sql('select id from rowlock.waiting')).map(({ id }) => id).join() === ids[0]
}

const MUTANTS: [what: string, verb: string, find: string, replace: string, probe: Probe][] = [
  [
    'rows that others hold are skipped',
    'claim',
    'for update skip locked) as s',
    'for update) as s',
    PASSED_BY,
  ],
  ['a claim needs a living lease', 'claim', 'and w.expires_at > v_now for', 'for', LEASED],
  [
    'the oldest of a line comes first',
    'claim',
    'order by w.available_at, w.id\n                 limit v_left',
    'order by w.available_at desc\n limit v_left',
    OLDEST_FIRST,
  ],
  ['a limit is no suggestion', 'claim', 'limit v_left', 'limit v_left + 1', WITHIN_LIMIT],
  ['a suspect is claimed alone', 'claim', 'and w.losses < 2', '', ALONE],
  [
    'a claim looks with a fresh snapshot',
    'require_read_committed',
    "'read uncommitted'",
    "'repeatable read'",
    ASKED_TWICE,
  ],
  [
    'complete is fenced',
    'complete',
    'select g.id, g.claim_id, g.result, g.ran_ms, null::text',
    'select g.id, (select r.claim_id from rowlock.running r where r.id = g.id), g.result, g.ran_ms, null::text',
    STALE('complete'),
  ],
  ['every other end is fenced', 'settle', 'and r.claim_id = g.claim_id', '', STALE('fail')],
  ['start is fenced', 'start', 'and r.claim_id = g.claim_id', '', STALE('start')],
  ['only who holds completes', 'require_held', 'is distinct from', '<>', NOT_HELD],
  ['a late completion raises', 'complete_in_transaction', ') = 0 then', ') < 0 then', RAISES],
  [
    'the reaper passes a living session by',
    'reap',
    'for update of r skip locked',
    'for update of r',
    SESSION_LIVES,
  ],
  ['keys are taken in their order', 'try_keys', 'order by f.queue, f.key', 'order by f.id', KEYS_IN_ORDER],
  ['a step of an import is done once', 'import_jobs', 'or v_import.lines <> p_after', '', ONE_STEP],
  [
    'an import keeps to its file',
    'import_jobs',
    'v_import.digest is distinct from p_digest',
    'false',
    SAME_FILE,
  ],
  [
    'two who import wait for each other',
    'import_jobs',
    'where i.key = p_key for update',
    'where i.key = p_key',
    TWO_IMPORT,
  ],
  [
    'what a filter finds is judged again under the lock',
    'cancel_many',
    'v_fit := "rowlock".fits(v_left, p_filter)',
    'v_fit := v_left',
    JUDGED_AGAIN,
  ],
  [
    'a call for many waits for nobody',
    'lock_waiting',
    'order by w.id for update skip locked',
    'order by w.id for update',
    WAITS_FOR_NOBODY,
  ],
  [
    'a bulk change goes on behind its cursor',
    'run_bulk',
    'p_from => v_bulk.after_id',
    'p_from => 0',
    EACH_ONCE,
  ],
  [
    'a bulk change leaves alone what came later',
    'run_bulk',
    'p_to => v_bulk.upto_id',
    'p_to => 999999999',
    NOT_WHAT_IT_MADE,
  ],
  ['what was busy is tried again', 'run_bulk', "= 'busy'", "= 'bsy'", BUSY_AGAIN],
  ['only jobs that fit are asked', 'refusals', 'or f.id is null or', 'or', ASKED_IF_IT_RUNS],
  [
    'a key goes back only if its job is not live',
    'redrive_many',
    'and not exists (select from "rowlock".waiting w where w.id = k.id)',
    '',
    KEY_OF_ANOTHER,
  ],
  [
    'a key goes to the first by id',
    'redrive_many',
    'and (d.dedupe_key is null or d.id = any (v_mine))',
    '',
    FIRST_HAS_THE_KEY,
  ],
  ['a job frees no key but its own', 'give_up', 'and d.job_id = k.job_id', '', OWN_KEY],
]

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('mutants')
})
afterAll(() => db.drop())

/** Run a probe on an empty queue; transactions that it leaves open are ended. */
async function holds(probe: Probe): Promise<boolean> {
  await db.sql(
    `truncate rowlock.waiting, rowlock.running, rowlock.dead_letter, rowlock.dedupe, rowlock.worker, rowlock.finished,
              rowlock.attempt, rowlock.cancel_request`,
  )
  try {
    return await probe(db)
  } finally {
    await db.sql(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'`,
    )
  }
}

test.each(MUTANTS)('%s, in %s', async (_, name, find, replace, probe) => {
  const [{ definition }] = (await db.sql(
    `select pg_get_functiondef(p.oid) as definition from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname = 'rowlock' and p.proname = $1`,
    [name],
  )) as [Row]
  expect(definition).toContain(find)
  expect(await holds(probe)).toBe(true)
  await db.sql(definition.replace(find, replace))
  try {
    expect(await holds(probe).catch(() => false)).toBe(false)
  } finally {
    await db.sql(definition)
  }
})
