// Many jobs in one call, from TypeScript: any number of ids, an answer for each, in the caller's transaction or not.

import pg from 'pg'
import { answersOf, createRowlock, defineJob, type Rowlock } from 'rowlock'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
let rowlock: Rowlock
const note = defineJob<number>('note')
beforeAll(async () => {
  db = await rowlockDatabase('client many')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const enqueue = async (count: number, queue = 'default') => {
  const made = await rowlock.enqueueMany(Array.from({ length: count }, (_, n) => note.with(n, { queue })))
  return made.map(({ id }) => id)
}

test('each verb answers each id in order, in the words of TypeScript', async () => {
  const by = { actor: 'eve', reason: 'why' }
  const [a, b] = (await enqueue(2)) as [string, string]
  const all = (answer: string) => [a, b].map((id) => ({ id, answer, detail: null }))
  expect(await rowlock.runNowMany([a, b], by)).toEqual(all('due'))
  expect(await rowlock.prioritizeMany([a, b], 3, by)).toEqual(all('prioritized'))
  expect(await rowlock.redriveMany([a], by)).toEqual([
    { id: a, answer: 'wrong_state', detail: { state: 'queued' } },
  ])
  expect(await rowlock.discardMany([a], by)).toMatchObject([{ answer: 'wrong_state' }])
  expect(await rowlock.cancelMany([a, b], by)).toEqual(all('cancelled'))
  const [retried] = await rowlock.retryMany([a], by)
  expect(retried).toEqual({ id: a, answer: 'retried', detail: { newJobId: expect.stringMatching(/^\d+$/) } })
  expect(await rowlock.job(retried!.detail!.newJobId!)).toMatchObject({ retriedFrom: a, state: 'queued' })
  expect(await rowlock.purgeMany([a, b], by)).toEqual(all('purged'))
  expect(await rowlock.job(a)).toBeNull()
  const rows = await db.sql('select distinct actor, reason from rowlock.audit')
  expect(rows).toEqual([by])
})

test('purge deletes one ended job, and says why it does not', async () => {
  const [id] = (await enqueue(1)) as [string]
  await expect(rowlock.purge(id)).rejects.toMatchObject({ code: 'WRONG_STATE', state: 'queued' })
  await rowlock.cancel(id)
  await rowlock.purge(id, { actor: 'eve' })
  await expect(rowlock.purge(id)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
})

test('more than a thousand ids are several calls; an id that is there twice is answered twice alike', async () => {
  const ids = await enqueue(2_500, 'large')
  const asked = new Set<string>([...ids, '999999999'])
  const answers = await rowlock.cancelMany([...asked, ids[7]!, ids[2_400]!])
  expect(answers).toHaveLength(2_503)
  expect(answers.map(({ id }) => id)).toEqual([...asked, ids[7], ids[2_400]])
  expect(new Set(answers.map(({ answer }) => answer))).toEqual(new Set(['cancelled', 'not_found']))
  expect(answers[2_500]).toMatchObject({ id: '999999999', answer: 'not_found' })
  expect(answers.at(-1)).toEqual({ id: ids[2_400], answer: 'cancelled', detail: null })
  expect(
    await db.value(`select count(*)::integer from rowlock.audit where verb = 'cancel' and job_id = $1`, [
      ids[7],
    ]),
  ).toBe(1)
})

test('when a thousand fails, the error has the answers of those before it', async () => {
  const ids = await enqueue(2_500, 'fails')
  await db.sql(`create function public.refuse() returns trigger language plpgsql as $$
    begin
      if new.job_id = ${ids[1_500]} then raise exception 'refused by somebody'; end if;
      return new;
    end $$`)
  await db.sql(
    'create trigger refuse before insert on rowlock.audit for each row execute function public.refuse()',
  )
  const error = await rowlock.cancelMany(ids).catch((error: unknown) => error)
  expect(error).toMatchObject({ message: expect.stringMatching(/refused by somebody/) })
  expect(answersOf(error)).toEqual(
    ids.slice(0, 1_000).map((id) => ({ id, answer: 'cancelled', detail: null })),
  )
  expect(Object.keys(error as object)).not.toContain('answers')
  expect(await rowlock.countJobs({ queue: 'fails', state: 'cancelled' })).toMatchObject({ count: 1_000 })

  const client = new pg.Client({ connectionString: db.url })
  await client.connect()
  await client.query('begin')
  const undone = await rowlock
    .in(client)
    .cancelMany(ids.slice(1_000))
    .catch((error: unknown) => error)
  expect(undone).toMatchObject({ message: expect.stringMatching(/refused by somebody/) })
  expect(answersOf(undone)).toEqual([])
  await client.query('rollback')
  await client.end()
  await db.sql('drop function public.refuse() cascade')
  expect(answersOf(new Error('another'))).toEqual([])
  expect(answersOf(undefined)).toEqual([])
})

test('ids may come from any iterable, and none is an answer to none', async () => {
  const ids = await enqueue(2)
  expect(await rowlock.cancelMany(new Set(ids))).toHaveLength(2)
  expect(await rowlock.cancelMany([])).toEqual([])
})

describe('in the caller’s transaction', () => {
  test('all of it is undone with it', async () => {
    const ids = await enqueue(1_200, 'undone')
    const client = new pg.Client({ connectionString: db.url })
    await client.connect()
    await client.query('begin')
    const answers = await rowlock.in(client).cancelMany(ids)
    expect(answers.every(({ answer }) => answer === 'cancelled')).toBe(true)
    await client.query('rollback')
    await client.end()
    const left = `select count(*)::integer from rowlock.waiting where queue = 'undone'`
    expect(await db.value(left)).toBe(1_200)
  })

  test('of a stricter isolation it is refused', async () => {
    const client = new pg.Client({ connectionString: db.url })
    await client.connect()
    await client.query('begin isolation level serializable')
    await expect(rowlock.in(client).purgeMany(['1'])).rejects.toMatchObject({ code: 'WRONG_ISOLATION' })
    await client.end()
  })
})

test.each([
  ['a text', '12', 'ids'],
  ['nothing', undefined, 'ids'],
  ['numbers', [1], 'ids[0]'],
  ['no id', ['1', ''], 'ids[1]'],
  ['a hole', [undefined, '1'], 'ids[0]'],
])('%s for ids is refused', async (_, ids, path) => {
  await expect(rowlock.cancelMany(ids as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', path })
})

test('a priority or an operator that is none is refused', async () => {
  const refused = (path: string) => ({ code: 'INVALID_OPTION', path })
  await expect(rowlock.prioritizeMany(['1'], 11)).rejects.toMatchObject(refused('priority'))
  await expect(rowlock.cancelMany(['1'], { actr: 'eve' } as never)).rejects.toMatchObject(refused('actr'))
  await expect(rowlock.purge('1', { actor: 7 as never })).rejects.toMatchObject(refused('actor'))
})
