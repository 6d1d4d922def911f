// The judge on real runs: verbs with a guard taken out do real harm, and the oracle that is meant for it says so.
// On the sound verbs the very same script is let pass.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { check } from '../../faults/checker.ts'
import { readRest } from '../../faults/drain.ts'
import type { Call, Figure, History, How, Pause } from '../../faults/history.ts'
import { installAudit, readWritten } from '../../faults/stage.ts'
import { endLease, enqueue, type Hand, held, register, type Taken, verb } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { twinOf } from './twin.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('twins')
  await installAudit(db)
})
afterAll(() => db.drop())

let run = 0
/** What the handler of an attempt says. */
async function say({ id, attempt }: Taken, phase: 'start' | 'end', how?: How): Promise<void> {
  run += phase === 'start' ? 1 : 0
  await db.sql(
    `insert into faults.ledger (job_id, attempt, key, pid, run, phase, how)
     select $1::bigint, $2::integer, $1::text, 1,
            coalesce((select max(l.run) from faults.ledger l
                       where l.job_id = $1 and l.attempt = $2 and $4 = 'end'), $3), $4, $5`,
    [id, attempt, run, phase, how ?? null],
  )
}
const claimOne = async (hand: Hand) => (await hand.claim({ limit: 1 })).jobs[0]
const calls: Call[] = []
const pauses: Pause[] = []
async function ask(ref: string, options: object = {}): Promise<void> {
  const text = 'select id, created from rowlock.enqueue($1, $2, $3)'
  const [row] = await db.sql(text, ['k', { ref }, options])
  calls.push({ ref, answer: 'ok', id: String(row.id), created: row.created, inTransaction: false })
}
/** Its handler ends well, and it is completed. */
async function finish(job: Taken): Promise<void> {
  await say(job, 'end', 'returned')
  await verb(db, 'complete', [held(job)])
}
/** The rest of the queue is done by a healthy worker. */
async function drain(): Promise<void> {
  const hand = await register(db)
  for (;;) {
    const job = await claimOne(hand)
    if (job === undefined) return
    await say(job, 'start')
    await finish(job)
  }
}

async function history(): Promise<History> {
  return {
    ...(await readWritten(db)),
    calls,
    operations: [],
    pauses,
    deaths: [],
    mishaps: [],
    concurrency: {},
    deaf: [],
    transactional: ['book'],
    // Workers by hand never retire.
    rest: { ...(await readRest(db)), workers: 0, sessions: 0, unfinished: 0 },
  }
}

/** One is claimed and started; its lease ends; it is given to another, and started there. */
async function handedOver(): Promise<readonly [stale: Taken, current: Taken]> {
  const [first, second] = [await register(db), await register(db)]
  await ask('a')
  const stale = (await claimOne(first))!
  await say(stale, 'start')
  await verb(db, 'start', [held(stale)])
  await endLease(db, first)
  await db.sql('select rowlock.reap()')
  await db.sql('update rowlock.waiting set available_at = clock_timestamp()')
  const current = (await claimOne(second))!
  await say(current, 'start')
  return [stale, current]
}

type Script = () => Promise<unknown>

const STALE_COMPLETE: Script = async () => {
  const [stale, current] = await handedOver()
  await say(stale, 'end', 'returned')
  await verb(db, 'complete', [held(stale)])
  await finish(current)
}

const STALE_FAIL: Script = async () => {
  const [stale, current] = await handedOver()
  await say(stale, 'end', 'threw')
  await verb(db, 'fail', [held(stale, { outcome: 'failed', cause: 'error', error: {}, after_ms: 0 })])
  await finish(current)
}

const CLAIM_WITHOUT_LEASE: Script = async () => {
  const hand = await register(db)
  await ask('a')
  await endLease(db, hand)
  await claimOne(hand).catch(() => {})
  await db.sql('select rowlock.reap()')
}

const REAP_THE_LIVING: Script = async () => {
  const hand = await register(db)
  await ask('a')
  const job = (await claimOne(hand))!
  await say(job, 'start')
  await db.sql('select rowlock.reap()')
  await finish(job)
}

const LEFT_BY_ITS_WORKER: Script = async () => {
  const hand = await register(db)
  await ask('a')
  await say((await claimOne(hand))!, 'start')
  await endLease(db, hand)
  await db.sql('select rowlock.reap()')
  await db.sql('update rowlock.waiting set available_at = clock_timestamp()')
}

const ONE: Script = () => ask('a')

const FAIL_TOO_OFTEN: Script = async () => {
  const hand = await register(db)
  await ask('a', { max_attempts: 1 })
  const job = (await claimOne(hand))!
  await say(job, 'start')
  await say(job, 'end', 'threw')
  await verb(db, 'fail', [held(job, { outcome: 'failed', cause: 'error', error: {}, after_ms: 0 })])
}

const TWICE_WITH_A_KEY: Script = async () => {
  await ask('a', { dedupe_key: 'key' })
  await ask('b', { dedupe_key: 'key' })
}

const CLAIM_THE_PAUSED: Script = async () => {
  const hand = await register(db)
  await ask('a')
  const clock = () =>
    db.value<number>('select extract(epoch from clock_timestamp())::double precision * 1000')
  await db.sql(`select rowlock.pause('default')`)
  const from = await clock()
  const job = await claimOne(hand)
  pauses.push({ queue: 'default', from, to: await clock() })
  await db.sql(`select rowlock.resume('default')`)
  if (job === undefined) return
  await say(job, 'start')
  await finish(job)
}

const WITH_A_KEY: Script = () => ask('a', { dedupe_key: 'key' })

async function enqueueBook(): Promise<void> {
  const id = await enqueue(db, {}, 'book')
  calls.push({ ref: 'a', answer: 'ok', id, created: true, inTransaction: false })
  await db.sql(`update rowlock.waiting set input = '{"ref": "a"}'`)
}

const LATE_TRANSACTION: Script = async () => {
  const hand = await register(db)
  await enqueueBook()
  const take = async () => (await hand.claim({ kinds: ['book'] })).jobs[0]!
  const commit = async ({ id, attempt, claim_id }: Taken) => {
    const session = await db.session()
    const run = (text: string, values: unknown[] = []) => session.query(text, values as never[])
    try {
      await run('begin')
      await run('insert into faults.booked (job_id, attempt) values ($1, $2)', [id, attempt])
      await run(`select set_config('rowlock_held.claim', $1, true)`, [claim_id])
      await run('select rowlock.complete_in_transaction($1, $2)', [id, claim_id])
      await run('commit')
    } catch {
      await run('rollback')
    }
    await session.end()
  }
  const stale = await take()
  await verb(db, 'hand_back', [held(stale)])
  await commit(stale)
  const current = await take()
  await say(current, 'start')
  await say(current, 'end', 'returned')
  await commit(current)
}

/** A statement of a transactional handler fails; it goes on, the reaper comes by, and another looks for work. */
const FAILED_STATEMENT: Script = async () => {
  const [first, second] = [await register(db), await register(db)]
  await enqueueBook()
  const take = async (hand: Hand) => (await hand.claim({ kinds: ['book'] })).jobs[0]
  const job = (await take(first))!
  const session = await db.session()
  const { rows } = await session.query('select pg_backend_pid() as pid')
  await session.query('begin')
  await session.query('select rowlock.hold($1, $2)', [job.id, job.claim_id])
  await verb(db, 'start', [held(job, { in_transaction: true, session_pid: rows[0].pid })])
  await say(job, 'start')
  await session.query('select 1 / 0').catch(() => {})
  // The error is told before the locks are gone; the next statement comes after that.
  await session.query('select 1').catch(() => {})
  await db.sql('select rowlock.reap()')
  await db.sql('update rowlock.waiting set available_at = clock_timestamp()')
  const beside = await take(second)
  if (beside !== undefined) await say(beside, 'start')
  await session.query('rollback')
  await session.end()
  await say(job, 'end', 'threw')
  await verb(db, 'fail', [held(job, { outcome: 'failed', cause: 'error', error: {}, after_ms: 0 })])
  const last = beside ?? (await take(second))!
  if (beside === undefined) await say(last, 'start')
  await db.sql('insert into faults.booked (job_id, attempt) values ($1, $2)', [last.id, last.attempt])
  await finish(last)
}

/** What is taken out, of which verb, what is done then, and the figures that must speak. */
const TWINS: readonly (readonly [
  what: string,
  name: string,
  find: string,
  replace: string,
  script: Script,
  figures: readonly Figure[],
])[] = [
  [
    'the fence of complete',
    'complete',
    'select g.id, g.claim_id, g.result, g.ran_ms, null::text',
    'select g.id, (select r.claim_id from rowlock.running r where r.id = g.id), g.result, g.ran_ms, null::text',
    STALE_COMPLETE,
    ['double_owner'],
  ],
  ['the fence of every other end', 'settle', 'and r.claim_id = g.claim_id', '', STALE_FAIL, ['double_owner']],
  [
    'the lease of whoever claims',
    'claim',
    'and w.expires_at > v_now for',
    'for',
    CLAIM_WITHOUT_LEASE,
    ['double_owner'],
  ],
  [
    'the look at pauses',
    'claim',
    'where q.paused_at is null',
    'where true',
    CLAIM_THE_PAUSED,
    ['limits_broken'],
  ],
  [
    'the lease of whom the reaper takes from',
    'reap',
    'where w.expires_at <= v_now\n       and not',
    'where not',
    REAP_THE_LIVING,
    ['double_owner'],
  ],
  [
    'the work of the reaper',
    'reap',
    `not pg_try_advisory_xact_lock(rowlock.lock_key('reap'))`,
    'true',
    LEFT_BY_ITS_WORKER,
    ['stuck'],
  ],
  [
    'the delete of a claim',
    'claim',
    `delete from rowlock.waiting w where w.ctid = any (v_tids)
      returning w.*, least(w.attempt, 2147483646) + 1 as attempt_now,
                v_together and w.losses = 0 and w.input is not null and num_nonnulls(
                  w.tenant_id, w.dedupe_key, w.idempotency_key, w.metadata, w.retried_from, w.expires_at) = 0
                  as is_bare`,
    `select w.*, least(w.attempt, 2147483646) + 1 as attempt_now, false as is_bare
       from rowlock.waiting w where w.ctid = any (v_tids)`,
    async () => {
      const hand = await register(db)
      await ask('a')
      const job = (await claimOne(hand))!
      await say(job, 'start')
      await finish(job)
      await db.sql('delete from rowlock.waiting')
    },
    ['double_owner', 'illegal_transitions'],
  ],
  [
    'the history that complete writes',
    'complete',
    'where d.retention_days > 0',
    'where false',
    ONE,
    ['lost'],
  ],
  [
    'the count of attempts',
    'claim',
    'least(w.attempt, 2147483646) + 1',
    'w.attempt',
    ONE,
    ['illegal_transitions'],
  ],
  [
    'the end of failures',
    'settle',
    'c.failures_now >= coalesce(c.max_attempts, 10)',
    'false',
    FAIL_TOO_OFTEN,
    ['illegal_transitions'],
  ],
  [
    'the key that a job takes',
    'try_keys',
    'case when g.key is null then g.id else d.job_id end',
    'g.id',
    TWICE_WITH_A_KEY,
    ['answers_broken'],
  ],
  ['the key that a job gives up', 'give_up', 'd.until is null', 'false', WITH_A_KEY, ['left_open']],
  [
    'the refusal of a transaction that comes too late',
    'complete_in_transaction',
    ') = 0 then',
    ') < 0 then',
    LATE_TRANSACTION,
    ['effects_broken'],
  ],
  [
    'the look for the session of a handler’s transaction',
    'reap',
    'and not rowlock.is_session_alive(r.session_pid)',
    '',
    FAILED_STATEMENT,
    ['double_owner'],
  ],
]

const FAULTS = ['audit', 'lease', 'ledger', 'session', 'asked', 'booked'].map((name) => `faults.${name}`)
const QUEUE = [
  'waiting',
  'running',
  'finished',
  'dead_letter',
  'attempt',
  'dedupe',
  'worker',
  'cancel_request',
]

async function judged(script: Script): Promise<readonly Figure[]> {
  await db.sql(`truncate ${[...QUEUE.map((name) => `rowlock.${name}`), ...FAULTS].join(', ')}`)
  calls.length = 0
  pauses.length = 0
  await script()
  await drain()
  return [...new Set(check(await history()).map(({ figure }) => figure))]
}

test.each(TWINS)('without %s, in %s', async (_, name, find, replace, script, figures) => {
  const [sound, broken] = await twinOf(db, name, find, replace)
  expect(await judged(script)).toEqual([])
  await db.sql(broken)
  try {
    expect(await judged(script)).toEqual(expect.arrayContaining([...figures]))
  } finally {
    await db.sql(sound)
  }
})

test('a hand in the history is seen', async () => {
  const changed = async () => {
    await ONE()
    await drain()
    await db.sql(`update rowlock.finished set state = 'failed'`)
  }
  expect(await judged(changed)).toEqual(['illegal_transitions'])
  expect(check(await history()).map(({ oracle }) => oracle)).toContain('O3')
})
