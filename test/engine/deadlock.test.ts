// Any two verbs may meet on the same jobs: no pair of them waits for each other in a circle.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { type Hand, type Row, random, register, seedOf } from './by-hand.ts'

const JOBS = 60
const ROUNDS = 25

let db: TestRowlock
let hand: Hand
let next: () => number
let one: pg.Client
let other: pg.Client
beforeAll(async () => {
  db = await rowlockDatabase('deadlock')
  hand = await register(db)
  next = random(seedOf('deadlock'))
  ;[one, other] = [await db.session(), await db.session()]
  // A deadlock must be seen, not waited out.
  await db.sql(
    `do $$ begin execute format('alter database %I set deadlock_timeout = ''20ms''', current_database()); end $$`,
  )
  for (const session of [one, other]) await session.query(`set deadlock_timeout = '20ms'`)
})
afterAll(() => db.drop())

/** What one session does, a transaction a statement; the ids come in an order of its own. */
type Act = (session: pg.Client, ids: string[]) => Promise<void>
const claims = new Map<string, string>()
const pairs = (ids: string[], more: Row = {}) =>
  // In id order, as the verbs that take pairs ask for it.
  [...ids].sort((a, b) => Number(a) - Number(b)).map((id) => ({ id, claim_id: claims.get(id), ...more }))
const by =
  (text: string, more: (ids: string[]) => unknown): Act =>
  async (session, ids) => {
    await session.query(text, [JSON.stringify(more(ids))])
  }
const each =
  (text: string, count = 12): Act =>
  async (session, ids) => {
    for (const id of ids.slice(0, count)) await session.query(text, [id]).catch(refusedAsItShould)
  }

const many =
  (name: string, more = ''): Act =>
  async (session, ids) => {
    await session.query(`select rowlock.${name}_many($1${more})`, [ids])
  }

/** What an operator's verb may answer when the job has moved on. */
function refusedAsItShould(error: { code?: string }): void {
  if (!['RL010', 'RL011', 'RL012', 'RL013'].includes(String(error.code))) throw error
}

const key = (id: string) => ({ kind: 'k', input: {}, queue: 'meet', dedupe_key: `key${Number(id) % JOBS}` })
const ACTS: Record<string, Act> = {
  complete: by('select rowlock.finish($1)', (ids) => ({ complete: pairs(ids) })),
  fail: by('select rowlock.finish($1)', (ids) => ({ fail: pairs(ids, { cause: 'Error', after_ms: 0 }) })),
  'finish, all ways': by('select rowlock.finish($1)', (ids) => ({
    complete: pairs(ids.filter((id) => Number(id) % 4 === 0)),
    fail: pairs(
      ids.filter((id) => Number(id) % 4 === 1),
      { cause: 'Error', permanent: true },
    ),
    snooze: pairs(
      ids.filter((id) => Number(id) % 4 === 2),
      { after_ms: 0 },
    ),
    hand_back: pairs(ids.filter((id) => Number(id) % 4 === 3)),
  })),
  heartbeat: async (session, ids) => {
    await session.query('select rowlock.heartbeat($1, $2)', [hand.id, JSON.stringify(pairs(ids))])
  },
  claim: async (session) => {
    await hand.claim({ queue: 'meet', limit: 20 }, session)
  },
  reap: async (session) => {
    await session.query('select rowlock.reap(40)')
  },
  cancel: each('select rowlock.cancel($1)'),
  run_now: each('select rowlock.run_now($1)'),
  prioritize: each('select rowlock.prioritize($1, 5)'),
  redrive: each('select rowlock.redrive($1)'),
  discard: each('select rowlock.discard($1)'),
  'cancel, many': many('cancel'),
  'run_now, many': many('run_now'),
  'prioritize, many': many('prioritize', ', 5'),
  'redrive, many': many('redrive'),
  'discard, many': many('discard'),
  'retry, many': many('retry'),
  'purge, many': many('purge'),
  sweep: async (session) => {
    await session.query('select rowlock.sweep(40)')
  },
  'set limits': async (session) => {
    const limits = { max_running: 40, rate: { starts: 1000, per: '1 s', burst: 1000 } }
    for (const settings of [limits, { ...limits, max_running: 10 }, { max_running: null, rate: null }]) {
      await session.query(`select rowlock.set_queue('meet', $1)`, [JSON.stringify(settings)])
    }
  },
  'enqueue with keys': by('select rowlock.enqueue_many($1)', (ids) => ids.map(key)),
}

function shuffled(ids: string[]): string[] {
  const list = [...ids]
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1))
    ;[list[i], list[j]] = [list[j]!, list[i]!]
  }
  return list
}

/** The same jobs again: some wait, some run (half of them orphans), some are dead; a few were asked to stop. */
async function scene(): Promise<string[]> {
  await db.sql(
    `truncate rowlock.waiting, rowlock.running, rowlock.dead_letter, rowlock.finished, rowlock.dedupe,
              rowlock.cancel_request, rowlock.attempt`,
  )
  await db.sql(
    `with ids as (select nextval('rowlock.job_id') as id, n from generate_series(1, $1) as n),
     keyed as (
       insert into rowlock.dedupe (queue, key, job_id)
       select 'meet', 'key' || id % $1, id from ids where n % 4 <> 3 returning 1),
     waits as (
       insert into rowlock.waiting (id, available_at, enqueued_at, expires_at, queue, kind, dedupe_key, input)
       select id, now(), now(), case when n % 8 = 0 then now() end, 'meet', 'k', 'key' || id % $1, '{}'
         from ids where n % 4 = 0),
     runs as (
       insert into rowlock.running (id, claimed_at, started_at, available_at, enqueued_at, claim_id, worker_id, attempt,
              priority, failures, losses, queue, kind, dedupe_key, input)
       select id, now(), case when n % 5 = 0 then now() end, now(), now(), gen_random_uuid(),
              case when n % 4 = 1 then $2::uuid else gen_random_uuid() end, 1, 0, 0, 0,
              'meet', 'k', 'key' || id % $1, '{}'
         from ids where n % 4 in (1, 2)),
     ended as (
       insert into rowlock.finished (id, finished_at, available_at, enqueued_at, attempt, priority, failures,
              retention_days, state, queue, kind, dedupe_key, input)
       select nextval('rowlock.job_id'), now(), now(), now(), 1, 0, 0, 7, 'done', 'meet', 'k', 'key' || n, '{}'
         from generate_series(1, 12) as n),
     asked as (insert into rowlock.cancel_request (job_id, requested_at) select id, now() from ids where n % 9 = 1)
     insert into rowlock.dead_letter (id, dead_at, available_at, enqueued_at, attempt, priority, failures, losses,
            queue, kind, dedupe_key, cause, input)
     select id, now(), now(), now(), 1, 0, 1, 0, 'meet', 'k', 'key' || id % $1, 'Error', '{}'
       from ids where n % 4 = 3`,
    [JOBS, hand.id],
  )
  const rows = await db.sql(
    'select id, claim_id from rowlock.job left join rowlock.running using (id) where job.queue = $1',
    ['meet'],
  )
  claims.clear()
  for (const { id, claim_id } of rows) if (claim_id) claims.set(id, claim_id)
  return rows.filter(({ id }) => id !== undefined).map(({ id }) => id)
}

const names = Object.keys(ACTS)
// A claim has one owner with one outcome: the same outcome may be sent twice, two different ones never.
const OUTCOMES = ['complete', 'fail', 'finish, all ways']
const meetings = names
  .flatMap((left, i) => names.slice(i).map((right) => [left, right] as const))
  .filter(([left, right]) => left === right || !OUTCOMES.includes(left) || !OUTCOMES.includes(right))

test.each(meetings)('%s and %s', async (left, right) => {
  const failures: unknown[] = []
  const run = async (name: string, session: pg.Client, ids: string[]) => {
    try {
      await ACTS[name]!(session, shuffled(ids))
    } catch (error) {
      failures.push([name, (error as { code?: string }).code, (error as Error).message])
    }
  }
  const rounds = left === right ? Math.ceil(ROUNDS / 5) : 3
  for (let round = 0; round < rounds; round++) {
    const ids = await scene()
    await Promise.all([run(left, one, ids), run(right, other, ids)])
  }
  expect(failures).toEqual([])
})
