// A bulk change from TypeScript: counted first, run in steps, stopped and gone on with, killed and lost nothing.

import { type BulkRow, createRowlock, defineJob, type Rowlock } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { killChildren, startChild } from '../support/child.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { makeGate } from '../support/gate.ts'
import { ground } from '../support/ground.ts'

let db: TestRowlock
let rowlock: Rowlock
const note = defineJob<number>('note')
beforeAll(async () => {
  db = await rowlockDatabase('client bulk')
  rowlock = createRowlock({ connectionString: db.url })
})
afterEach(killChildren)
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

let queues = 0
/** Jobs of a queue of their own, which are not yet due. */
async function waiting(count: number): Promise<{ queue: string; ids: string[] }> {
  const queue = `q${++queues}`
  const made = await rowlock.enqueueMany(
    Array.from({ length: count }, (_, n) => note.with(n, { queue, delay: '1h' })),
  )
  return { queue, ids: made.map(({ id }) => id) }
}

/** How often the jobs were changed: [1] when each was once. */
const noted = (ids: readonly string[]) =>
  db.value<number[]>(
    `select array_agg(distinct n)::integer[] from (
       select count(a.id) as n from unnest($1::bigint[]) as j (id)
         left join rowlock.audit a on a.job_id = j.id group by j.id) as each`,
    [ids],
  )

test('it is counted, run in steps and told after each, and kept', async () => {
  const { queue, ids } = await waiting(5)
  const bulk = await rowlock.bulk('prioritize', { queue }, { priority: 4, actor: 'eve', reason: 'why' })
  expect(bulk.row).toMatchObject({
    id: bulk.id,
    verb: 'prioritize',
    filter: { queue, state: ['queued', 'retryable'] },
    args: { priority: 4 },
    actor: 'eve',
    reason: 'why',
    startedAt: expect.any(Date),
    endedAt: null,
    outcome: null,
    matched: 5,
    about: false,
    changed: 0,
    afterId: '0',
    refused: exactly({}),
  })
  const steps: [number, string[]][] = []
  const row = await bulk.run({
    limit: 2,
    onStep: (row, answers) => steps.push([row.changed, answers.map(({ id }) => id)]),
  })
  expect(steps).toEqual([
    [2, ids.slice(0, 2)],
    [4, ids.slice(2, 4)],
    [5, ids.slice(4)],
  ])
  expect(row).toMatchObject({ changed: 5, outcome: 'done', endedAt: expect.any(Date) })
  expect(bulk.row).toEqual(row)
  expect((await rowlock.openBulk(bulk.id)).row).toEqual(row)
  expect((await rowlock.bulks({ limit: 1 }))[0]).toEqual(row)
  expect(await bulk.run()).toEqual(row)
  expect(await noted(ids)).toEqual([1])
})

test('answers of a retry name the new jobs', async () => {
  const { queue, ids } = await waiting(1)
  await rowlock.cancelMany(ids)
  const answers: unknown[] = []
  await (await rowlock.bulk('retry', { queue, state: 'cancelled' })).run({
    onStep: (_, more) => answers.push(...more),
  })
  expect(answers).toEqual([
    { id: ids[0], answer: 'retried', detail: { newJobId: expect.stringMatching(/^\d+$/) } },
  ])
})

test('a filter comes back in the words it was given in', async () => {
  const filter = { tenantId: ['a', 'b'], enqueuedSince: new Date(0), metadata: { order_id: 1 } }
  const { id } = await rowlock.bulk('cancel', filter)
  const { row } = await rowlock.openBulk(id)
  expect(row.filter).toEqual({
    ...filter,
    enqueuedSince: '1970-01-01T00:00:00.000Z',
    state: ['queued', 'retryable', 'running'],
  })
})

test('one that is aborted ends between two steps, and goes on from there', async () => {
  const { queue, ids } = await waiting(6)
  const bulk = await rowlock.bulk('cancel', { queue })
  const abort = new AbortController()
  const row = await bulk.run({ limit: 2, signal: abort.signal, onStep: () => abort.abort() })
  expect(row).toMatchObject({ changed: 2, outcome: null })
  expect(await bulk.run({ signal: abort.signal })).toMatchObject({ changed: 2 })
  const again = await rowlock.openBulk(bulk.id)
  expect(await again.run({ limit: 3 })).toMatchObject({ changed: 6, outcome: 'done' })
  expect(await noted(ids)).toEqual([1])
})

test('one that is stopped by somebody else ends after its step', async () => {
  // Far more steps than pass until the stop has come.
  const { queue } = await waiting(2_000)
  const bulk = await rowlock.bulk('cancel', { queue })
  let stopped: Promise<BulkRow> | undefined
  const row = await bulk.run({
    limit: 1,
    onStep: () => {
      stopped ??= rowlock.openBulk(bulk.id).then((other) => other.stop({ actor: 'bob' }))
    },
  })
  expect(row.outcome).toBe('stopped')
  expect(row.changed).toBeLessThan(2_000)
  expect(await stopped).toMatchObject({ outcome: 'stopped' })
})

describe('a process that runs one', () => {
  test('is killed in the middle: another goes on, and each job is changed once', async () => {
    const { queue, ids } = await waiting(400)
    const bulk = await rowlock.bulk('run_now', { queue })
    const gate = await makeGate(db, 'bulk', 'changed')
    await gate.close(40)
    const child = startChild('client/bulk-child.ts', { url: db.url, id: bulk.id })
    await child.until('some steps are done', ({ changed }) => changed >= 40)
    await gate.untilReached()
    child.signal('SIGKILL')
    await child.ended()
    await gate.open()
    const rest = await rowlock.openBulk(bulk.id)
    expect(rest.row).toMatchObject({ outcome: null })
    expect(rest.row.changed).toBeLessThan(400)
    expect(await rest.run()).toMatchObject({ changed: 400, refused: exactly({}), outcome: 'done' })
    expect(await noted(ids)).toEqual([1])
  })

  test('is not the only one: two do no harm', async () => {
    const { queue, ids } = await waiting(60)
    const { id } = await rowlock.bulk('run_now', { queue })
    const both = await Promise.all([rowlock.openBulk(id), rowlock.openBulk(id)])
    const rows = await Promise.all(both.map((bulk) => bulk.run({ limit: 7 })))
    expect(rows.map(({ changed, outcome }) => [changed, outcome])).toEqual(Array(2).fill([60, 'done']))
    expect(await noted(ids)).toEqual([1])
  })

  test('meets a deadlock with the transaction of another: its step is done again', async () => {
    const { queue, ids } = await waiting(4)
    const bulk = await rowlock.bulk('run_now', { queue })
    // The first step fails as one that lost against another transaction does.
    await db.sql(`create function public.fail_once() returns trigger language plpgsql as $$
      begin
        if nextval('public.fails') = 1 then raise exception using errcode = '40P01'; end if;
        return new;
      end $$`)
    await db.sql('create sequence public.fails')
    await db.sql(
      'create trigger fail_once before update on rowlock.bulk for each row execute function public.fail_once()',
    )
    expect(await bulk.run()).toMatchObject({ changed: 4, outcome: 'done' })
    await db.sql('drop function public.fail_once() cascade')
    expect(await db.value('select last_value::integer from public.fails')).toBe(2)
    expect(await noted(ids)).toEqual([1])
  })
})

test.each([
  [
    'an unknown verb',
    (r: Rowlock) => r.bulk('redriv' as never, { queue: 'a' }),
    'verb',
    /did you mean 'redrive'/,
  ],
  [
    'an unknown filter',
    (r: Rowlock) => r.bulk('redrive', { quueue: 'a' } as never),
    'quueue',
    /did you mean 'queue'/,
  ],
  ['no filter', (r: Rowlock) => r.bulk('redrive', {}), 'all', /"all": true/],
  ['a state of others', (r: Rowlock) => r.bulk('redrive', { state: 'done' }), 'state', /does not apply/],
  [
    'a priority for a redrive',
    (r: Rowlock) => r.bulk('redrive', { all: true }, { priority: 1 }),
    'priority',
    /takes no/,
  ],
  ['no priority', (r: Rowlock) => r.bulk('prioritize', { all: true }), 'priority', /from -10 to 10/],
  [
    'a bad priority',
    (r: Rowlock) => r.bulk('prioritize', { all: true }, { priority: 1.5 }),
    'priority',
    /priority/,
  ],
  [
    'an unknown option',
    (r: Rowlock) => r.bulk('cancel', { all: true }, { actr: 'a' } as never),
    'actr',
    /actor/,
  ],
  ['an id that is none', (r: Rowlock) => r.openBulk('x'), 'id', /digits/],
  ['a limit beyond', (r: Rowlock) => r.bulks({ limit: 0 }), 'limit', /limit/],
  [
    'steps too large',
    async (r: Rowlock) => (await r.bulk('cancel', { queue: 'a' })).run({ limit: 1001 }),
    'limit',
    /1,?000/,
  ],
])('%s is refused', async (_, call, path, says) => {
  const error = await call(rowlock).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toMatchObject({ code: 'INVALID_OPTION', path, message: expect.stringMatching(says) })
})

test('one that is not there is BULK_NOT_FOUND', async () => {
  await expect(rowlock.openBulk('999999')).rejects.toMatchObject({ code: 'BULK_NOT_FOUND' })
  const { queue } = await waiting(1)
  const bulk = await rowlock.bulk('cancel', { queue })
  await db.sql('delete from rowlock.bulk where id = $1', [bulk.id])
  await expect(bulk.run()).rejects.toMatchObject({ code: 'BULK_NOT_FOUND' })
  await expect(bulk.stop()).rejects.toMatchObject({ code: 'BULK_NOT_FOUND' })
})

test('in a schema of an odd name, for a role whose transactions are strict, all of it works', async () => {
  const at = await ground('bulk ground')
  try {
    const url = await at.role('strict', [`set default_transaction_isolation = 'serializable'`])
    const schema = `a.b "c' \\ %s`
    await at.admin(`create schema "a.b ""c' \\ %s" authorization ${new URL(url).username}`)
    const client = at.client({ url, schema })
    await client.migrate()
    const [first] = await client.enqueueMany([note.with(1), note.with(2)])
    const { id } = first!
    expect(await client.cancelMany([id])).toMatchObject([{ answer: 'cancelled' }])
    expect(await (await client.bulk('cancel', { queue: 'default' })).run()).toMatchObject({ changed: 1 })
    expect(await (await client.bulk('retry', { state: 'cancelled' })).run()).toMatchObject({ changed: 2 })
    expect(await client.purgeMany([id])).toMatchObject([{ answer: 'purged' }])
    expect(await client.bulks()).toHaveLength(2)
  } finally {
    await at.drop()
  }
})
