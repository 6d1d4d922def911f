// Who is woken by what, at the level of SQL: a notice for each queue where somebody sleeps beyond what is due, and no
// other (faults/mutants takes the guards out).

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  endLease,
  enqueue,
  enqueueMany,
  type Hand,
  held,
  register,
  stateOf,
  verb,
} from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('notices')
})
afterAll(() => db.drop())
const TABLES = 'waiting running finished dead_letter attempt queue worker sleeper'
beforeEach(async () => {
  await db.sql(
    TABLES.split(' ')
      .map((table) => `delete from rowlock.${table}`)
      .join(';'),
  )
  hand = await register(db)
})
const call = (text: string, values: unknown[] = []) => db.value(`select ${text}`, values)

describe('a notice', () => {
  const notices: string[] = []
  beforeAll(async () => {
    const listener = await db.session()
    listener.on('notification', ({ payload }) => void notices.push(payload!))
    await listener.query(`do $$ begin execute format('listen %I', rowlock.channel()); end $$`)
  })
  /** The notices of queues that came since, up to one of our own. */
  const heard = async () => {
    await call(`pg_notify(rowlock.channel(), 'over')`)
    await until('the last notice has come', () => notices.includes('over'))
    return notices.splice(0).filter((one) => one.startsWith('queue '))
  }
  const sleepFor = (length: string, worker = hand.id) =>
    call(`rowlock.sleep($1, array['default'], now() + $2::interval)`, [worker, length])

  test('comes of an enqueue, and of what is put back, where somebody sleeps beyond it', async () => {
    const id = await enqueue(db)
    expect(await heard()).toEqual([])
    const [job] = (await hand.claim()).jobs
    await sleepFor('1 minute')
    await enqueue(db)
    expect(await heard()).toEqual(['queue default'])
    await enqueue(db, { delay: '1 hour' })
    expect(await heard()).toEqual([])
    await verb(db, 'snooze', [held(job!, { after_ms: 5 })])
    expect(await heard()).toEqual(['queue default'])
    expect(await stateOf(db, id)).toBe('queued')
  })

  test('comes of a resume, a redrive, a retry and a job that is to run now', async () => {
    await enqueueMany(db, [{ max_attempts: 1 }, {}])
    const { jobs } = await hand.claim()
    await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
    await verb(db, 'complete', [held(jobs[1]!)])
    const later = await enqueue(db, { delay: '2 hours' })
    await call(`rowlock.pause('default')`)
    await sleepFor('1 hour')
    await heard()
    const acts: [string, unknown[]][] = [
      [`rowlock.resume('default')`, []],
      ['rowlock.redrive($1)', [jobs[0]!.id]],
      ['rowlock.retry($1)', [jobs[1]!.id]],
      ['rowlock.run_now($1)', [later]],
    ]
    for (const [text, values] of acts) {
      await call(text, values)
      expect([text, await heard()]).toEqual([text, ['queue default']])
    }
  })

  test('is not sent for one of two queues whose sleeper wakes up before the job is due', async () => {
    await sleepFor('1 hour')
    await call(`rowlock.sleep($1, array['soon'], now() + interval '1 s')`, [hand.id])
    await enqueueMany(db, [{ delay: '1 minute' }, { delay: '1 minute', queue: 'soon' }])
    expect(await heard()).toEqual(['queue default'])
  })

  test('is not sent to a worker whose lease is over', async () => {
    await sleepFor('1 hour')
    await endLease(db, hand)
    await enqueue(db)
    expect(await heard()).toEqual([])
  })

  test('goes to everybody from a stricter isolation, which sees no flag raised since', async () => {
    const session = await db.session()
    await session.query('begin isolation level repeatable read')
    await enqueueMany(db, [{}], session)
    await session.query('commit')
    expect(await heard()).toEqual(['queue default'])
  })
})
