// A dedupe key belongs to one live job of its queue, from its enqueue to its end, whatever happens in between.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'
import {
  endLease,
  enqueue,
  enqueueMany,
  type Hand,
  held,
  random,
  refusal,
  register,
  seedOf,
  type Taken,
  untilBlocked,
  verb,
} from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('dedupe')
  hand = await register(db)
})
afterAll(async () => {
  await sound()
  await db.drop()
})

let queues = 0
const KEY = { dedupe_key: 'order:42' }

/** A keyed job, alone in its queue, claimed. */
async function claimed(options: Record<string, unknown> = {}): Promise<Taken> {
  const queue = `q${++queues}`
  await enqueue(db, { ...KEY, queue, backoff: { type: 'fixed', delay_ms: 0 }, ...options })
  return (await hand.claim({ queue })).jobs[0]!
}

const again = async (queue: string) =>
  (await db.sql('select * from rowlock.enqueue($1, $2, $3)', ['k', '{}', { ...KEY, queue }]))[0]

/** Every key names a live job of its queue that has it, and every live job with a key has its row. */
async function sound(): Promise<void> {
  const stray = await db.sql(
    `with live as (select id, queue, dedupe_key from rowlock.waiting
                   union all select id, queue, dedupe_key from rowlock.running)
     select d.queue, d.key, d.job_id, l.id from rowlock.dedupe d
       full join (select * from live where dedupe_key is not null) l
         on l.id = d.job_id and l.queue = d.queue and l.dedupe_key = d.key
      where d.job_id is null or l.id is null`,
  )
  expect(stray).toEqual([])
}

describe('a key is free again when its job has ended', () => {
  const fail = { cause: 'Error', error: {} }
  const ENDS: Record<string, (job: Taken) => Promise<unknown>> = {
    complete: (job) => verb(db, 'complete', [held(job)]),
    'fail, permanent': (job) => verb(db, 'fail', [held(job, { ...fail, permanent: true })]),
    'fail, failures used up': async (job) => {
      await db.sql('update rowlock.running set max_attempts = 1 where id = $1', [job.id])
      await verb(db, 'fail', [held(job, fail)])
    },
    abandon: (job) => verb(db, 'abandon', [held(job)]),
    'cancel while it runs': async (job) => {
      expect(await db.value('select rowlock.cancel($1)', [job.id])).toBe('requested')
      await verb(db, 'fail', [held(job, fail)])
    },
    'cancel while it waits': async (job) => {
      await verb(db, 'hand_back', [held(job)])
      expect(await db.value('select rowlock.cancel($1)', [job.id])).toBe('cancelled')
    },
    'reap, failures used up': async (job) => {
      await db.sql(
        'update rowlock.running set max_attempts = 1, started_at = clock_timestamp() where id = $1',
        [job.id],
      )
      await endLease(db, hand)
      await db.sql('select rowlock.reap()')
      hand = await register(db)
    },
    expire: async (job) => {
      await verb(db, 'hand_back', [held(job)])
      await db.sql('update rowlock.waiting set expires_at = clock_timestamp() where id = $1', [job.id])
      await db.sql('select rowlock.expire()')
    },
    'expire, met by a claim': async (job) => {
      await verb(db, 'hand_back', [held(job)])
      await db.sql('update rowlock.waiting set expires_at = clock_timestamp() where id = $1', [job.id])
      expect((await hand.claim({ queue: job.queue })).ids).toEqual([])
    },
    'finish, with others': (job) => db.sql('select rowlock.finish($1)', [{ complete: [held(job)] }]),
    complete_in_transaction: (job) =>
      db.sql('select rowlock.hold($1, $2), rowlock.complete_in_transaction($1, $2)', [job.id, job.claim_id]),
  }
  test.each(Object.entries(ENDS))('%s', async (_, end) => {
    const job = await claimed()
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
    await end(job)
    const next = await again(job.queue)
    expect(next.created).toBe(true)
    await sound()
    // The new job's key is its own: the end of the old one is over and takes nothing more away.
    expect(await again(job.queue)).toEqual({ id: next.id, created: false })
  })

  test('a dead letter that is discarded frees no key that another job has taken since', async () => {
    const job = await claimed({ max_attempts: 1 })
    await verb(db, 'fail', [held(job, fail)])
    const next = await again(job.queue)
    expect(next.created).toBe(true)
    await db.sql('select rowlock.discard($1)', [job.id])
    expect(await again(job.queue)).toEqual({ id: next.id, created: false })
  })

  test('in a queue without history as well', async () => {
    await db.sql(`select rowlock.set_queue('brief', '{"retention_days":0}')`)
    await enqueue(db, { ...KEY, queue: 'brief' })
    const { jobs } = await hand.claim({ queue: 'brief' })
    await verb(db, 'complete', [held(jobs[0]!)])
    expect((await again('brief')).created).toBe(true)
  })
})

describe('a key is kept while its job is live', () => {
  test.each([
    ['retry after a failure', 'fail', { cause: 'Error' }],
    ['snooze', 'snooze', { after_ms: 0 }],
    ['hand back', 'hand_back', {}],
  ])('%s', async (_, name, more) => {
    const job = await claimed()
    await verb(db, name, [held(job, more)])
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
    expect((await hand.claim({ queue: job.queue })).ids).toEqual([job.id])
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
    await sound()
  })

  test('reap', async () => {
    const job = await claimed()
    await endLease(db, hand)
    await db.sql('select rowlock.reap()')
    hand = await register(db)
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
  })

  test('one key is another in another queue, and no key is never a duplicate', async () => {
    const one = await claimed()
    expect((await again(`${one.queue}x`)).created).toBe(true)
    const { existing } = await enqueueMany(db, [{}, {}, {}])
    expect(existing).toEqual([])
  })
})

describe('a job that becomes live again takes its key again', () => {
  const dead = async () => {
    const job = await claimed({ max_attempts: 1 })
    await verb(db, 'fail', [held(job, { cause: 'Error' })])
    return job
  }

  test('redrive', async () => {
    const job = await dead()
    await db.sql('select rowlock.redrive($1)', [job.id])
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
    await sound()
  })

  test('retry, as a new job', async () => {
    const job = await claimed()
    await verb(db, 'complete', [held(job)])
    const id = await db.value('select rowlock.retry($1)', [job.id])
    expect(await again(job.queue)).toEqual({ id, created: false })
    await sound()
  })

  test('or is refused, with the holder, and changes nothing', async () => {
    const parked = await dead()
    const holder = await again(parked.queue)
    const refused = await refusal(db.sql('select rowlock.redrive($1)', [parked.id]))
    expect(refused).toMatchObject({ code: 'RL013', detail: { holder: holder.id } })
    const ended = await claimed()
    await verb(db, 'complete', [held(ended)])
    const other = await again(ended.queue)
    expect(await refusal(db.sql('select rowlock.retry($1)', [ended.id]))).toMatchObject({
      code: 'RL013',
      detail: { holder: other.id },
    })
    expect(await db.value('select state from rowlock.job where id = $1', [parked.id])).toBe('dead_letter')
    await sound()
  })
})

describe('many at once', () => {
  test('the first of a call wins, what is live wins over the call, answers keep their order', async () => {
    const next = random(seedOf('dedupe'))
    const queue = `q${++queues}`
    const live = await enqueueMany(
      db,
      Array.from({ length: 50 }, (_, n) => ({ queue, dedupe_key: `live${n}` })),
    )
    const jobs = Array.from({ length: 1000 }, (_, n) => {
      if (n % 4 === 0) return { queue }
      return { queue, dedupe_key: n % 4 === 1 ? `live${n % 50}` : `new${n % 70}` }
    })
    for (let i = jobs.length - 1; i > 0; i--) {
      const j = Math.floor(next() * (i + 1))
      ;[jobs[i], jobs[j]] = [jobs[j]!, jobs[i]!]
    }
    const { ids, existing } = await enqueueMany(db, jobs)
    const firsts = new Map(live.ids.map((id, n) => [`live${n}`, id]))
    const expected: number[] = []
    for (const [n, job] of jobs.entries()) {
      const key = (job as { dedupe_key?: string }).dedupe_key
      if (key === undefined) continue
      if (firsts.has(key)) {
        expected.push(n)
        expect(ids[n]).toBe(firsts.get(key))
      } else firsts.set(key, ids[n]!)
    }
    expect(existing).toEqual(expected)
    expect(await db.value('select count(*)::integer from rowlock.waiting where queue = $1', [queue])).toBe(
      50 + 1000 - expected.length,
    )
    await sound()
  })

  test('two calls with the same 3,000 keys in opposite order both end, and each key has one job', async () => {
    const [one, other] = [await db.session(), await db.session()]
    for (let round = 0; round < 20; round++) {
      const queue = `q${++queues}`
      const jobs = Array.from({ length: 3000 }, (_, n) => ({ queue, dedupe_key: `${n}` }))
      const send = async (session: typeof one, list: typeof jobs) => {
        const ids: string[] = []
        // As the client does: a thousand a statement, each in a transaction of its own.
        for (let i = 0; i < 3000; i += 1000)
          ids.push(...(await enqueueMany(db, list.slice(i, i + 1000), session)).ids)
        return ids
      }
      const [forth, back] = await Promise.all([send(one, jobs), send(other, [...jobs].reverse())])
      expect(forth).toEqual([...back].reverse())
      expect(new Set(forth).size).toBe(3000)
    }
  }, 60_000)

  test('calls whose keys are being freed all the while: no deadlock, no key with two jobs', async () => {
    const queue = `q${++queues}`
    const next = random(seedOf('dedupe, freed'))
    const failures: unknown[] = []
    let producing = 3
    const produce = async () => {
      const session = await db.session()
      for (let i = 0; i < 120; i++) {
        const jobs = Array.from({ length: 40 }, () => ({ queue, dedupe_key: `${Math.floor(next() * 60)}` }))
        await enqueueMany(db, jobs, session).catch((error) => failures.push(error))
      }
      producing--
    }
    const work = async () => {
      const own = await register(db)
      const session = await db.session()
      while (producing > 0) {
        const { jobs } = await own.claim({ queue, limit: 7 }, session)
        if (jobs.length > 0)
          await verb(
            db,
            'complete',
            jobs.map((job) => held(job)),
            session,
          )
      }
    }
    await Promise.all([produce(), produce(), produce(), work(), work()])
    expect(failures).toEqual([])
    await sound()
  }, 60_000)
})

describe('a twin in flight', () => {
  test('is waited for, and its job answered once it commits', async () => {
    const queue = `q${++queues}`
    const session = await db.session()
    await session.query('begin')
    const first = (await enqueueMany(db, [{ queue, ...KEY }], session)).ids[0]
    const second = again(queue)
    await untilBlocked(db)
    await session.query('commit')
    expect(await second).toEqual({ id: first, created: false })
  })

  test('leaves the key to the other once it rolls back', async () => {
    const queue = `q${++queues}`
    const session = await db.session()
    await session.query('begin')
    const first = (await enqueueMany(db, [{ queue, ...KEY }], session)).ids[0]
    const second = again(queue)
    await untilBlocked(db)
    await session.query('rollback')
    expect((await second).created).toBe(true)
    expect((await second).id).not.toBe(first)
    await sound()
  })

  test('that is the end of the live job is not waited for: until it commits the job has its key', async () => {
    const job = await claimed()
    const session = await db.session()
    await session.query('begin')
    await verb(db, 'complete', [held(job)], session)
    expect(await again(job.queue)).toEqual({ id: job.id, created: false })
    await session.query('commit')
    expect((await again(job.queue)).created).toBe(true)
    await sound()
  })

  test('that is a claim is not waited for', async () => {
    const queue = `q${++queues}`
    const id = await enqueue(db, { ...KEY, queue })
    const session = await db.session()
    await session.query('begin')
    expect((await hand.claim({ queue }, session)).ids).toEqual([id])
    expect(await again(queue)).toEqual({ id, created: false })
    await session.query('commit')
  })

  test('does not make the finish of the live job wait', async () => {
    const job = await claimed()
    const session = await db.session()
    await session.query('begin')
    expect((await enqueueMany(db, [{ queue: job.queue, ...KEY }], session)).ids).toEqual([job.id])
    expect(await verb(db, 'complete', [held(job)])).toEqual([job.id])
    await session.query('commit')
    await sound()
  })

  test('that a stricter transaction cannot see is refused, not stored twice', async () => {
    const queue = `q${++queues}`
    const session = await db.session()
    await session.query('begin isolation level repeatable read')
    await session.query('select 1')
    const id = await enqueue(db, { ...KEY, queue })
    const refused = await refusal(enqueueMany(db, [{ queue, ...KEY }], session))
    expect(['RL011', '40001']).toContain(refused.code)
    await session.query('rollback')
    expect(await again(queue)).toEqual({ id, created: false })
  })
})

test('a call that must try again lets its keys go first', async () => {
  const queue = `q${++queues}`
  const keyed = (...keys: string[]) => keys.map((dedupe_key) => ({ queue, dedupe_key }))
  const [first, last, late, probe] = await Promise.all([1, 2, 3, 4].map(() => db.session()))
  await first!.query('begin')
  await enqueueMany(db, keyed('a'), first)
  await last!.query('begin')
  await enqueueMany(db, keyed('c'), last)
  // It waits for a; meanwhile b is taken, so that it holds a and will not get b, and waits for c.
  const call = enqueueMany(db, keyed('a', 'b', 'c'))
  await untilBlocked(db)
  const taken = await enqueue(db, { queue, dedupe_key: 'b' })
  await first!.query('rollback')
  await until('the call waits for c', async () => {
    const text = `select wait_event_type = 'Lock' and query like '%enqueue_many%' from pg_stat_activity
                   where datname = current_database() and $1::integer = any (pg_blocking_pids(pid))`
    return db.value<boolean>(text, [(await last!.query('select pg_backend_pid() as pid')).rows[0].pid])
  })
  // Now b is freed, so that nobody has it when the call looks who; and in flight again when the call tries again.
  await db.sql('select rowlock.cancel($1)', [taken])
  await late!.query('begin')
  await enqueueMany(db, keyed('b'), late)
  await last!.query('rollback')
  const blocked = `select count(*)::integer from pg_stat_activity where datname = current_database()
                      and $1::integer = any (pg_blocking_pids(pid))`
  const pid = (await late!.query('select pg_backend_pid() as pid')).rows[0].pid
  await until('the call waits for b', async () => (await db.value<number>(blocked, [pid])) === 1)
  // It holds nothing that comes after b.
  await probe!.query(`set lock_timeout = '200ms'`)
  const other = await enqueueMany(db, keyed('c'), probe)
  expect(other.existing).toEqual([])
  await late!.query('rollback')
  const { ids, existing } = await call
  expect(existing).toEqual([2])
  expect(ids[2]).toBe(other.ids[0])
  await sound()
})

test('a lock_timeout of the caller bounds the wait for a key, and other keys are free meanwhile', async () => {
  const queue = `q${++queues}`
  const [holder, other] = [await db.session(), await db.session()]
  await holder.query('begin')
  await enqueueMany(db, [{ queue, ...KEY }], holder)
  await other.query(`set lock_timeout = '50ms'`)
  expect((await refusal(enqueueMany(db, [{ queue, ...KEY }], other))).code).toBe('55P03')
  expect((await enqueueMany(db, [{ queue, dedupe_key: 'free' }], other)).existing).toEqual([])
  await holder.query('rollback')
})
