// Why a job waits: each reason from a situation that has it, told so that a newcomer finds out from the sentence alone.

import { describe, expect, test } from 'vitest'
import { endLease, enqueue, fill, held, verb } from './by-hand.ts'
import { codes, db, facts, first, open, rowlock, serve, setUp, why } from './why-rig.ts'

setUp('why')

describe('a job that waits', () => {
  test('for its time: until when, and how it is made due', async () => {
    await serve()
    const id = await enqueue(db, { delay: '3 hours' })
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'scheduled', since: expect.any(Date), until: expect.any(Date) })
    expect(reason.says).toMatch(/due at \d.*\(in 2 h 59 min\)\. rowlock run-now \d+/)
    expect(await codes(id)).toEqual(['scheduled'])
  })

  test('for its next attempt: what failed, which failure it was, until when', async () => {
    const hand = await serve()
    const id = await enqueue(db, { max_attempts: 7, backoff: { type: 'fixed', delay_ms: 600_000 } })
    const { jobs } = await hand.claim()
    const error = { name: 'Error', message: 'connect ECONNREFUSED 10.0.0.1\nat …' }
    await verb(db, 'fail', [held(jobs[0]!, { outcome: 'failed', cause: 'ECONNREFUSED', error, ran_ms: 1 })])
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'retry_later',
      detail: { cause: 'ECONNREFUSED', failures: 1, max_attempts: 7, attempt: 1 },
    })
    expect(reason.says).toMatch(
      /attempt 1 failed \(ECONNREFUSED\): connect ECONNREFUSED 10\.0\.0\.1; that is failure 1 of 7\. .*\(in 9 min\)/,
    )
  })

  test('for its handler put it off', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    const { jobs } = await hand.claim()
    await verb(db, 'snooze', [held(jobs[0]!, { after_ms: 60_000, ran_ms: 1 })])
    expect(await first(id)).toMatchObject({ reason: 'scheduled', detail: { snoozed: true } })
    expect((await first(id)).says).toMatch(/^its handler put it off/)
  })

  test('for its queue is paused: since when, by whom, why, and what to type', async () => {
    await serve({ "ana's queue": { concurrency: 1 } })
    const id = await enqueue(db, { queue: "ana's queue" })
    await rowlock.pause("ana's queue", { actor: 'bo', reason: 'an older one' })
    await rowlock.resume("ana's queue")
    await rowlock.pause("ana's queue", { actor: 'ana', reason: 'provider down' })
    const [reason, ...rest] = await why(id)
    expect(rest).toEqual([])
    expect(reason).toMatchObject({
      reason: 'paused',
      since: expect.any(Date),
      detail: { queue: "ana's queue", actor: 'ana', reason: 'provider down' },
    })
    expect(reason!.says).toMatch(
      /queue ana's queue is paused since \d\d:\d\d:\d\d \S+ \(\d+ m?s ago\) by ana: provider down\. /,
    )
    expect(reason!.says).toContain(`rowlock resume 'ana'\\''s queue'`)
  })

  test('for no worker serves its queue: which are served, and the one that was meant', async () => {
    const id = await enqueue(db, { queue: 'emial' })
    expect((await first(id)).says).toMatch(/no worker lives at all/)
    await serve({ email: {}, default: {} })
    await endLease(db, await serve({ emial: {} }))
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'no_worker', detail: { served: ['default', 'email'] } })
    expect(reason.says).toMatch(/no living worker serves queue emial; .*did you mean email/)
  })

  test('for no worker handles its kind: which kinds they handle', async () => {
    const id = await enqueue(db, {}, 'sendEmial')
    await serve(undefined, ['sendEmail', 'resize'])
    await serve({ other: {} }, ['sendEmial'])
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'no_handler', detail: { handled: ['resize', 'sendEmail'] } })
    expect(reason.says).toMatch(
      /none handles kind sendEmial; they handle: resize, sendEmail; did you mean sendEmail/,
    )
  })

  test('for all workers are draining', async () => {
    const id = await enqueue(db)
    const hand = await serve()
    await facts(hand, { draining: true })
    expect(await codes(id)).toEqual(['workers_draining'])
    await serve()
    expect(await codes(id)).toEqual(['due'])
  })

  test('for all slots of all workers are taken; one free slot is enough', async () => {
    const hand = await serve()
    await fill(db, 2)
    await hand.claim({ limit: 2 })
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'workers_full', detail: { slots: 2, held: 2 } })
    expect(reason.says).toMatch(
      /all 1 worker\(s\) .* busy: 2 job\(s\) of queue default are claimed for 2 slot\(s\)/,
    )
    await facts(hand, { by_queue: { default: { concurrency: 3 } } })
    expect(await codes(id)).toEqual(['due'])
    await facts(hand, { by_queue: { default: { concurrency: 1 } } })
    expect(await codes(id)).toEqual(['workers_full'])
    await serve(undefined, undefined, 'w2')
    expect(await codes(id)).toEqual(['due'])
  })

  test('for handlers that ignored their signal hold the slots, or a job that runs alone', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    // Their jobs were reported: nothing in running tells of them.
    await facts(hand, { stuck: 2, by_queue: { default: { stuck: 2 } } })
    expect(await first(id)).toMatchObject({ reason: 'workers_full', detail: { slots: 2, held: 0, stuck: 2 } })
    expect((await first(id)).says).toMatch(
      /2 slot\(s\) are held by handlers that ignored their signal: restart worker w1\. It/,
    )
    await facts(hand, { stuck: 2, by_queue: { default: { stuck: 1 } } })
    expect(await codes(id)).toEqual(['due'])
    await fill(db, 1, { priority: '1' })
    await hand.claim({ limit: 1 })
    expect(await codes(id)).toEqual(['workers_full'])
    await facts(hand, { stuck: 0, by_queue: { default: { stuck: 0 } } })
    expect(await codes(id)).toEqual(['due'])
    await db.sql('update rowlock.running set losses = 2')
    expect((await first(id)).says).toMatch(/job \d+ runs alone/)
  })

  test('and its queue is set to other slots than a worker of an older release follows', async () => {
    const hand = await serve({ default: { concurrency: 1 } })
    await fill(db, 1)
    await hand.claim({ limit: 1 })
    const id = await enqueue(db)
    await rowlock.setQueue('default', { concurrency: 9 })
    expect(await first(id)).toMatchObject({ reason: 'workers_full', detail: { slots: 1 } })
    expect(await rowlock.queue('default')).toMatchObject({ concurrency: 9, slots: 1 })
    expect(await rowlock.workers()).toMatchObject([{ slots: 1, queues: { default: { concurrency: 1 } } }])
    // What a worker made of the setting it tells; one that tells of its queues and not that, follows it.
    await facts(hand, { by_queue: { default: { concurrency: 4 } } })
    expect(await rowlock.queue('default')).toMatchObject({ slots: 4 })
    expect(await rowlock.workers()).toMatchObject([{ slots: 4, queues: { default: { concurrency: 4 } } }])
    await facts(hand, { by_queue: { default: { running: 1 } } })
    expect(await rowlock.queue('default')).toMatchObject({ slots: 9 })
    expect(await codes(id)).toEqual(['due'])
  })

  test('for it was lost with its worker: it is claimed alone', async () => {
    await serve()
    const id = await enqueue(db)
    await db.sql('update rowlock.waiting set losses = 2')
    expect(await first(id)).toMatchObject({ reason: 'suspect', detail: { losses: 2 } })
  })

  test('behind others: in its line, of other kinds that wait longer, and of higher priority', async () => {
    const hand = await serve(undefined, ['k', 'other'])
    const past = (age: string) => `clock_timestamp() - interval '${age}'`
    await fill(db, 3, { available_at: past('1 min') })
    await fill(db, 5, { available_at: past('1 min'), kind: `'other'` })
    await fill(db, 7, { priority: '5', kind: `'other'` })
    const id = await enqueue(db)
    // None of these comes first: later, of a lower priority, scheduled, of a foreign kind or queue.
    await fill(db, 11, { available_at: 'clock_timestamp()', kind: `'other'` })
    await fill(db, 13, { available_at: past('1 h'), priority: '-1' })
    await fill(db, 17, { available_at: `clock_timestamp() + interval '1 h'`, priority: '5' })
    await fill(db, 19, { priority: '5', kind: `'foreign'` })
    await fill(db, 23, { available_at: past('1 min'), queue: `'foreign'` })
    // Nor do those that are to run alone, wherever they stand.
    const suspects = { available_at: past('2 h'), losses: '2' }
    for (const more of [{}, { kind: `'other'` }, { priority: '7' }])
      await fill(db, 29, { ...suspects, ...more })
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'behind',
      detail: { ahead: 15, about: false, in_line: 3, beside: 5, higher: 7 },
    })
    await facts(hand, { by_queue: { default: { done: 10, failed: 5 } } })
    expect((await first(id)).says).toMatch(
      /15 due job\(s\) .* at 15 a minute, as in the last one, that is 1 min/,
    )
  })

  test('behind more than are counted: their number is bounded, and said to be', async () => {
    await serve()
    await fill(db, 10_050)
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'behind', detail: { ahead: 10_000, about: true } })
    expect(reason.says).toMatch(/^more than 10000 due job/)
  })

  test('behind a few, whatever waits in lines that do not come first', async () => {
    await serve(undefined, ['a', 'k', 'z'])
    await fill(db, 10_050, { kind: `'a'`, priority: '-1' })
    await fill(db, 3, { kind: `'z'`, priority: '5' })
    const reason = await first(await enqueue(db))
    expect(reason).toMatchObject({ reason: 'behind', detail: { ahead: 3, about: false, higher: 3 } })
  })

  test('for nothing: the next look takes it; for long: whose logs to read', async () => {
    await serve()
    const id = await enqueue(db)
    expect(await first(id)).toMatchObject({ reason: 'due', since: expect.any(Date) })
    await db.sql(`update rowlock.waiting set available_at = available_at - interval '5 min'`)
    expect((await first(id)).says).toMatch(/due since .*\(5 min ago\).*see the logs of w1/)
  })

  test('and expires: until when, and when it is over', async () => {
    await serve()
    const id = await enqueue(db, { expires_in: '1 hour', delay: '2 hours' })
    const [, expires] = await why(id)
    expect(expires).toMatchObject({ reason: 'expires', until: expect.any(Date) })
    expect(expires!.says).toMatch(/is cancelled at .*\(in 59 min\)/)
    await db.sql(`update rowlock.waiting set expires_at = clock_timestamp() - interval '1 min'`)
    expect(await codes(id)).toEqual(['expired'])
  })

  test('and has expired: it is to be cancelled, and nothing else is said of it but who has its row', async () => {
    const hand = await serve()
    await fill(db, 3)
    const id = await enqueue(db, { expires_in: '0 s' })
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'expired', since: expect.any(Date), until: null })
    expect(reason.says).toMatch(
      /^it expired at .* ago\), before it started: the next claim or sweep .* cancels it$/,
    )
    expect(await codes(id)).toEqual(['expired'])
    const session = await open('select from rowlock.waiting where id = $1 for update', [id])
    expect(await codes(id)).toEqual(['expired', 'row_locked'])
    await session.query('rollback')
    await endLease(db, hand)
    expect((await first(id)).says).toMatch(/no worker lives that would cancel it: start one$/)
  })

  test('though it was asked to be cancelled while it ran', async () => {
    const hand = await serve()
    const id = await enqueue(db)
    const { jobs } = await hand.claim()
    // The worker's word and the request cross.
    await db.sql(`insert into rowlock.cancel_request values ($1, now(), 'ana', 'wrong file')`, [id])
    await db.sql(
      `with gone as (delete from rowlock.running returning *)
       insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind, input, attempt)
       select id, available_at, enqueued_at, queue, kind, input, attempt from gone`,
    )
    expect(jobs).toHaveLength(1)
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'cancel_requested',
      detail: { actor: 'ana', reason: 'wrong file' },
    })
    expect(await codes(id)).toEqual(['cancel_requested'])
  })

  test('has all its reasons, the most important first', async () => {
    const id = await enqueue(db, { delay: '1 hour', expires_in: '2 hours' })
    await rowlock.pause('default')
    const session = await open('select from rowlock.waiting for update')
    expect(await codes(id)).toEqual(['scheduled', 'paused', 'row_locked', 'no_worker', 'expires'])
    await session.query('rollback')
  })
})
