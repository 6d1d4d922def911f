// What was done to a queue is found by its name: to the queue itself and to each of its jobs, whatever was done
// elsewhere. Why a queue is paused is known for as long as it is.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueueMany, held, type Row, register, stateOf, verb } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('changes')
})
afterAll(() => db.drop())
beforeEach(() =>
  db.sql(
    'truncate rowlock.waiting; delete from rowlock.running; delete from rowlock.audit; delete from rowlock.queue',
  ),
)

const page = (filter: Row, limit = 50, before: string | null = null) =>
  db.value<{ changes: Row[]; next: string | null }>('select rowlock.changes_page($1, $2, $3)', [
    filter,
    limit,
    before,
  ])

/** A job that waits. */
const one = async (options: Row = {}): Promise<string> =>
  (await enqueueMany(db, [{ queue: 'mail', ...options }])).ids[0]!

async function dead(): Promise<string> {
  await one({ max_attempts: 1 })
  const { jobs } = await (await register(db)).claim({ queue: 'mail' })
  await verb(db, 'fail', [held(jobs[0]!, { cause: 'Error' })])
  return jobs[0]!.id
}

describe('a change of a job', () => {
  const waiting = () => one({ delay: '1 hour' })
  const ended = async () => {
    const id = await one()
    await db.sql('select rowlock.cancel($1)', [id])
    await db.sql('delete from rowlock.audit')
    return id
  }
  const running = async () => {
    const id = await one()
    await (await register(db)).claim({ queue: 'mail' })
    return id
  }
  test.each<[string, () => Promise<string>, string]>([
    ['cancel', waiting, ''],
    ['cancel', running, ''],
    ['run_now', waiting, ''],
    ['prioritize', waiting, '3,'],
    ['redrive', dead, ''],
    ['discard', dead, ''],
    ['retry', ended, ''],
    ['purge', ended, ''],
  ])('by %s is one of its queue', async (verb, make, args) => {
    const id = await make()
    await db.sql(`select * from rowlock.${verb}_many(array[$1::bigint], ${args} 'eve', 'why')`, [id])
    expect((await page({ queue: 'mail' })).changes).toEqual([
      expect.objectContaining({ verb, job_id: id, queue: 'mail', actor: 'eve', reason: 'why' }),
    ])
    expect((await page({ queue: 'other' })).changes).toEqual([])
  })
})

describe('many changes', () => {
  const many = (queue: string, n: number) =>
    db.sql(
      `insert into rowlock.audit (at, verb, job_id, queue, actor)
       select now() + n * interval '1 ms', 'cancel', n, $1, 'bulk' from generate_series(1, $2::integer) as n`,
      [queue, n],
    )

  test('of another queue hide nothing', async () => {
    await db.sql(`select rowlock.pause('mail', 'ana', 'provider down')`)
    await many('other', 60_000)
    const expected = expect.objectContaining({ verb: 'pause', actor: 'ana', reason: 'provider down' })
    expect(await page({ queue: 'mail' })).toEqual({ changes: [expected], next: null })
    expect(await db.sql(`select verb from rowlock.changes('{"queue": "mail"}')`)).toEqual([{ verb: 'pause' }])
  })

  test('of its jobs do not hide what was done to the queue', async () => {
    await db.sql(`select rowlock.pause('mail', 'ana')`)
    await many('mail', 60_000)
    const { changes, next } = await page({ queue: 'mail', verb: 'pause' })
    expect(changes).toEqual([expect.objectContaining({ actor: 'ana' })])
    expect(next).toBeNull()
  })

  test('of a queue are paged by id, each once', async () => {
    await many('mail', 120)
    await many('other', 50)
    const seen: Row[] = []
    let before: string | null = null
    do {
      const { changes, next }: { changes: Row[]; next: string | null } = await page(
        { queue: 'mail' },
        50,
        before,
      )
      seen.push(...changes)
      before = next
    } while (before !== null)
    expect(seen.map(({ job_id: id }) => Number(id))).toEqual(Array.from({ length: 120 }, (_, n) => 120 - n))
    const since = seen[9]!.at as string
    expect((await page({ queue: 'mail', since })).changes).toHaveLength(10)
    expect((await page({ queue: 'mail', until: since }, 200)).changes).toHaveLength(110)
  })
})

test('why a queue is paused is known for as long as it is, however long ago that was', async () => {
  for (const queue of ['long', 'over'])
    await db.sql(`select rowlock.pause($1, 'ana', 'provider down')`, [queue])
  await db.sql(`select rowlock.resume('over')`)
  await db.sql(`update rowlock.audit set at = at - interval '100 days'`)
  await db.sql(`update rowlock.queue set paused_at = paused_at - interval '100 days'`)
  await db.sql(`select rowlock.pause('over')`)
  await db.sql(`select rowlock.sweep()`)
  expect(await db.sql(`select queue, actor from rowlock.audit order by id`)).toEqual([
    { queue: 'long', actor: 'ana' },
    { queue: 'over', actor: null },
  ])
  expect(await db.sql(`select paused_by, paused_because from rowlock.paused('long')`)).toEqual([
    { paused_by: 'ana', paused_because: 'provider down' },
  ])
})

test('a dead letter that was discarded keeps why, in its row and in its story', async () => {
  const [why, bare] = [await dead(), await dead()]
  await db.sql(`select rowlock.discard($1, 'eve', 'customer left')`, [why])
  await db.sql(`select rowlock.discard($1)`, [bare])
  expect(
    await db.sql('select id, actor, reason from rowlock.job where id = any ($1) order by id', [[why, bare]]),
  ).toEqual([
    { id: why, actor: 'eve', reason: 'discarded: customer left' },
    { id: bare, actor: null, reason: 'discarded' },
  ])
  expect(await stateOf(db, why!)).toBe('cancelled')
})
