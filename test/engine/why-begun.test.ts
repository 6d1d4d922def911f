// How a job runs and how it ended, as `why` tells it, whatever is written in its row.

import { describe, expect, test } from 'vitest'
import { endLease, enqueue, fill, held, verb } from './by-hand.ts'
import { codes, db, facts, first, open, pidOf, rowlock, serve, setUp, why } from './why-rig.ts'

setUp('why_begun')

describe('a job that runs', () => {
  const claimOne = async (options: Record<string, unknown> = {}) => {
    const hand = await serve()
    const id = await enqueue(db, options)
    const { jobs } = await hand.claim()
    return { hand, id, job: jobs[0]! }
  }

  test('claimed a moment ago: the next beat tells whether it has started', async () => {
    const { id } = await claimOne()
    expect((await first(id)).says).toMatch(/worker w1 claimed it at .*told by the next beat/)
    expect(await codes(id)).toEqual(['running'])
  })

  test('started: on which worker, since when, until when', async () => {
    const { id, job } = await claimOne({ timeout: '10 min' })
    await verb(db, 'start', [held(job)])
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'running', detail: { worker: 'w1', attempt: 1 } })
    expect(reason.says).toMatch(
      /attempt 1 runs on worker w1 since .* until .*\(in 9 min\)\. The lease holds until/,
    )
  })

  test('claimed ahead of a free slot: what it waits for', async () => {
    const hand = await serve()
    await fill(db, 2)
    const id = await enqueue(db, { expires_in: '1 hour' })
    await hand.claim({ limit: 3 })
    await facts(hand, {})
    const [reason, expires] = await why(id)
    expect(reason).toMatchObject({ reason: 'prefetched', detail: { held: 3, slots: 2 } })
    expect(reason!.says).toMatch(/waits for a free slot there \(3 jobs of queue default for 2 slots\)/)
    expect(expires).toMatchObject({ reason: 'expires' })
    await db.sql('delete from rowlock.running where id <> $1', [id])
    expect(await codes(id)).toEqual(['running', 'expires'])
    await facts(hand, { by_queue: { default: { stuck: 2 } } })
    expect((await first(id)).says).toMatch(
      /a free slot .* for 2 slots, 2 of them held by handlers that ignored/,
    )
    await db.sql('update rowlock.running set losses = 2')
    expect((await first(id)).says).toMatch(/to run alone/)
  })

  test('beyond its timeout', async () => {
    const { id, job } = await claimOne({ timeout: '1 min' })
    await verb(db, 'start', [held(job)])
    await db.sql(`update rowlock.running set started_at = clock_timestamp() - interval '4 min'`)
    expect(await codes(id)).toEqual(['overdue', 'running'])
    expect((await first(id)).says).toMatch(/has run for 4 min, and may for 1 min: its signal was given/)
  })

  test('beyond the timeout of its kind, as its worker told it; a job within it is accused of nothing', async () => {
    const { hand, id, job } = await claimOne()
    await verb(db, 'start', [held(job)])
    await db.sql(`update rowlock.running set started_at = clock_timestamp() - interval '20 min'`)
    await facts(hand, { timeouts: { k: 3_600_000, other: 1_000 } })
    const [running, ...rest] = await why(id)
    expect(rest).toEqual([])
    expect(running!.says).toMatch(/it may take until .*\(in 39 min\)\. The lease/)
    await facts(hand, { timeouts: { k: 600_000 } })
    expect((await first(id)).says).toMatch(/has run for 20 min, and may for 10 min: its signal was given/)
    await facts(hand, { timeouts: {} })
    expect((await first(id)).says).toMatch(/has run for 20 min, and may for 15 min: its signal was given/)
  })

  test('beyond the default, on a worker that does not tell the timeouts of its kinds: nothing is claimed', async () => {
    const { hand, id, job } = await claimOne()
    await verb(db, 'start', [held(job)])
    expect((await first(id)).says).toMatch(/may take until .*, unless its handler says otherwise\. The lease/)
    await db.sql(`update rowlock.running set started_at = clock_timestamp() - interval '20 min'`)
    await facts(hand, { timeouts: null })
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'overdue', detail: { timeout_ms: 900_000, is_told: false } })
    expect(reason.says).toMatch(
      /^it has run for 20 min, longer than the default of 15 min; .* worker w1 does not tell/,
    )
    expect(reason.says).not.toMatch(/signal/)
  })

  test('though it was asked to be cancelled: by whom, why', async () => {
    const { id } = await claimOne()
    await rowlock.cancel(id, { actor: 'ana', reason: 'wrong file' })
    expect(await codes(id)).toEqual(['cancel_requested', 'running'])
    expect((await first(id)).says).toMatch(
      /asked at .* by ana: wrong file: its signal is given with the next beat/,
    )
  })

  test('under a lease that is over: who gives it back', async () => {
    const { id, hand } = await claimOne()
    await endLease(db, hand)
    expect(await codes(id)).toEqual(['lease_over'])
    expect((await first(id)).says).toMatch(/lease of worker w1 is over since .*no worker lives.*: start one/)
    await serve({ other: {} })
    expect((await first(id)).says).toMatch(/the next sweep of the worker on duty gives it back/)
    await db.sql('delete from rowlock.worker where id = $1', [hand.id])
    expect((await first(id)).says).toMatch(/is gone/)
  })

  test('in a transaction: which session has it', async () => {
    const { id, job } = await claimOne()
    const session = await open('select rowlock.hold($1, $2)', [job.id, job.claim_id])
    await verb(db, 'start', [held(job, { in_transaction: true })])
    const reason = await first(id)
    expect(reason.detail).toMatchObject({ in_transaction: true, session: { pid: await pidOf(session) } })
    expect(reason.says).toMatch(/its transaction is that of pid \d+, idle in transaction/)
    await session.query('rollback')
    expect((await first(id)).says).toMatch(/its transaction is gone/)
  })
})

describe('a job that ended', () => {
  const end = async (name: string, more: object, options: Record<string, unknown> = {}) => {
    const hand = await serve()
    const id = await enqueue(db, options)
    const { jobs } = await hand.claim()
    await verb(db, name, [held(jobs[0]!, { ran_ms: 1, ...more })])
    return id
  }
  const failure = { outcome: 'failed', cause: 'Error', error: { message: 'no such user' } }

  test('done: when, and how long it took', async () => {
    const id = await end('complete', {})
    expect(await why(id)).toMatchObject([{ reason: 'done', detail: { attempt: 1 } }])
    expect((await first(id)).says).toMatch(/it is done since .*, after \d+ ms of attempt 1$/)
  })

  test('done, though nobody told when it started', async () => {
    const id = await end('complete', {})
    await db.sql('update rowlock.finished set started_at = null')
    expect((await first(id)).says).toMatch(/it is done since [^,]*, by attempt 1$/)
  })

  test('without a cause: none is told', async () => {
    const id = await end('fail', { ...failure, permanent: true })
    await db.sql('update rowlock.finished set cause = null')
    expect((await first(id)).says).toMatch(/failed for good at .* ago\): no such user/)
  })

  test('failed for good: the error, and how it is run again', async () => {
    const id = await end('fail', { ...failure, permanent: true })
    const says = /failed for good at .* \(Error\): no such user: .*rowlock retry \d+ runs it again/
    expect((await first(id)).says).toMatch(says)
    const again = await rowlock.retry(id)
    expect(await first(id)).toMatchObject({ reason: 'failed', detail: { retried_as: again.id } })
    expect((await first(id)).says).toMatch(new RegExp(`run again as job ${again.id}`))
  })

  test('cancelled: by whom and why, or for it expired', async () => {
    const id = await enqueue(db)
    await rowlock.cancel(id, { actor: 'ana', reason: 'a test' })
    expect((await first(id)).says).toMatch(/it was cancelled at .* by ana: a test\. rowlock retry/)
    const late = await enqueue(db, { expires_in: '0 s' })
    await db.sql('select rowlock.expire()')
    expect((await first(late)).says).toMatch(/expired before it started/)
  })

  test('a dead letter: the error, the failures, what to type, and what stands in the way', async () => {
    const id = await end('fail', failure, { max_attempts: 1, dedupe_key: 'one' })
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'dead_letter',
      detail: { cause: 'Error', failures: 1, max_attempts: 1 },
    })
    expect(reason.says).toMatch(
      /attempt 1 failed \(Error\): no such user, and that was failure 1 of 1\. rowlock redrive/,
    )
    const other = await enqueue(db, { dedupe_key: 'one' })
    expect((await first(id)).says).toMatch(
      new RegExp(`Job ${other} has its dedupe key by now: rowlock redrive is refused until that one ends$`),
    )
    await db.sql('delete from rowlock.dead_letter')
  })
})

describe('whatever is written in a row', () => {
  test.each([
    ['available_at', 'infinity', /^it is scheduled: it is never due\. rowlock run-now/],
    ['available_at', '-infinity', /due since the beginning of time/],
    ['expires_at', 'infinity', /./],
    ['expires_at', '-infinity', /^it expired at the beginning of time/],
  ])('%s %s: there is an answer', async (column, value, says) => {
    await serve()
    const id = await enqueue(db)
    await db.sql(`update rowlock.waiting set ${column} = $1`, [value])
    expect((await first(id)).says).toMatch(says)
    expect((await rowlock.story(id)).length).toBeGreaterThan(0)
    expect(await rowlock.queues()).toHaveLength(1)
  })

  test('names, causes and reasons with percent signs, quotes and line ends: there is an answer', async () => {
    const odd = `50% "off" 'now' \\ $1 ☃`
    await serve({ [odd]: { concurrency: 1 } }, [odd], odd)
    const id = await enqueue(db, { queue: odd }, odd)
    await rowlock.pause(odd, { actor: odd, reason: `${odd}\nand more` })
    expect((await first(id)).says).toContain(`queue ${odd} is paused`)
    await rowlock.resume(odd)
    expect(await codes(id)).toEqual(['due'])
  })

  test('facts of another program that are not what ours are: there is an answer', async () => {
    const hand = await serve({ default: { concurrency: 'many' } })
    const id = await enqueue(db)
    await facts(hand, {
      by_queue: 'none',
      timeouts: 'none',
      running: 'x',
      stuck: null,
      lag_ms: 1e30,
      draining: null,
    })
    expect(await codes(id)).toEqual(['due'])
    await facts(hand, { by_queue: { default: ['x'] }, timeouts: { k: 'x' } })
    expect(await codes(id)).toEqual(['due'])
    await db.sql(`update rowlock.worker set queues = '["default"]'`)
    expect(await codes(id)).toEqual(['due'])
    expect(await rowlock.workers()).toMatchObject([{ running: 0, stuck: 0, lagMs: 2_147_483_647 }])
    expect(await rowlock.queues()).toMatchObject([{ queue: 'default', donePerMinute: 0 }])
  })
})
