// Why a due job of a limited queue waits: who runs in its place, when the next one may start, who has the limits.

import { describe, expect, test } from 'vitest'
import { enqueue, fill, held, verb } from './by-hand.ts'
import { codes, db, first, rowlock, serve, setUp, why } from './why-rig.ts'

setUp('why_limited')

describe('a job waits', () => {
  test('for as many of its queue run as may: it names them, their workers, and what to type', async () => {
    await rowlock.setQueue('default', { maxRunning: 2 })
    const [one, two] = [await serve(undefined, undefined, 'w1'), await serve(undefined, undefined, 'w2')]
    await fill(db, 2)
    const a = await one.claim({ limit: 1 })
    const b = await two.claim({ limit: 1 })
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'running_limit',
      detail: {
        queue: 'default',
        max_running: 2,
        running: 2,
        holders: [
          { id: a.ids[0], worker: 'w1', worker_id: one.id },
          { id: b.ids[0], worker: 'w2', worker_id: two.id },
        ],
      },
    })
    expect(reason.says).toMatch(
      new RegExp(
        `^queue default runs 2 job\\(s\\), of at most 2 over all workers: job ${a.ids[0]} on w1 since .*, ` +
          `job ${b.ids[0]} on w2 since .* rowlock queue default --max-running 4 lets more run$`,
      ),
    )
    expect(await codes(id)).toEqual(['running_limit'])
    await verb(
      db,
      'complete',
      a.jobs.map((job) => held(job)),
    )
    expect(await codes(id)).toEqual(['due'])
  })

  test('for the rate of its queue: it says when the next one may start, and what to type', async () => {
    await rowlock.setQueue('default', { rate: { starts: 1, per: '1h', burst: 1 } })
    const hand = await serve()
    await fill(db, 1)
    await hand.claim({ limit: 1 })
    const id = await enqueue(db)
    const reason = await first(id)
    expect(reason).toMatchObject({
      reason: 'rate_limit',
      detail: { queue: 'default', starts: 1, per_ms: 3_600_000, burst: 1 },
    })
    const { nextStartAt } = await rowlock.queue('default')
    expect(reason.until).toEqual(nextStartAt)
    expect(reason.says).toMatch(
      /^queue default starts 1 job\(s\) in 1 h, at most 1 at once, over all workers: the next may start .*in 59 min/,
    )
    expect(reason.says).toMatch(/rowlock queue default --rate 2\/1h lets more start$/)
    expect(await codes(id)).toEqual(['rate_limit'])
    await rowlock.setQueue('default', { rate: { starts: 1, per: 1_500, burst: 1 } })
    await hand.claim({ limit: 1 })
    expect((await first(id)).says).toMatch(/--rate 2\/1500ms lets more start$/)
    await rowlock.setQueue('default', { rate: null })
    expect(await codes(id)).toEqual(['due'])
  })

  test('for somebody changes the limits and does not commit', async () => {
    await rowlock.setQueue('default', { maxRunning: 2 })
    await serve()
    const id = await enqueue(db)
    const session = await db.session()
    await session.query('begin')
    await session.query(`select rowlock.set_queue('default', '{"max_running": 3}')`)
    const { rows } = await session.query('select pg_backend_pid() as pid')
    const reason = await first(id)
    expect(reason).toMatchObject({ reason: 'limits_locked', detail: { pid: rows[0].pid } })
    expect(reason.says).toMatch(
      /has the limits of its queue locked, so that none of it starts, in a transaction since/,
    )
    await session.query('commit')
    expect(await codes(id)).toEqual(['due'])
  })

  test('for nothing of the limits where it is not due, or no limit is reached', async () => {
    await rowlock.setQueue('default', { maxRunning: 1, rate: { starts: 1, per: '1h', burst: 5 } })
    const hand = await serve()
    const later = await enqueue(db, { delay: '1 hour' })
    const id = await enqueue(db)
    expect(await codes(id)).toEqual(['due'])
    await hand.claim({ limit: 1 })
    expect(await codes(later)).toEqual(['scheduled'])
    expect((await why(await enqueue(db)))[0]).toMatchObject({ reason: 'running_limit' })
  })
})
