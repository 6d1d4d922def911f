// A job that was lost twice may be what takes its worker down: it is claimed alone, and not for ever later.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { enqueue, enqueueMany, fill, type Hand, held, register, verb } from './by-hand.ts'

let db: TestRowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('suspect')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.running, rowlock.finished, rowlock.worker, rowlock.queue')
  hand = await register(db)
})

const lose = (id: string, losses: number) =>
  db.sql('update rowlock.waiting set losses = $2 where id = $1', [id, losses])

test('a job that was lost once is claimed with others, one that was lost twice alone', async () => {
  const { ids } = await enqueueMany(db, [{}, {}, {}, {}])
  await lose(ids[0]!, 1)
  await lose(ids[2]!, 2)
  expect(await hand.claim()).toMatchObject({ ids: [ids[0], ids[1], ids[3]], alone: false })
  expect(await hand.claim()).toMatchObject({ ids: [ids[2]], alone: true })
})

test('a suspect at the head of a line is not taken beside jobs of another line', async () => {
  await enqueue(db, { priority: 5 })
  const suspect = await enqueue(db)
  await lose(suspect, 7)
  const first = await hand.claim()
  expect(first.ids).not.toContain(suspect)
  expect(first.found).toEqual({ default: 1 })
  expect(await hand.claim()).toMatchObject({ ids: [suspect], alone: true })
})

test('a queue that has only a suspect loses no flag for a job it did not get', async () => {
  const suspect = await enqueue(db, { queue: 'quiet' })
  await lose(suspect, 2)
  for (let i = 0; i < 20; i++) {
    await enqueue(db)
    const reply = await hand.claim([{}, { queue: 'quiet' }])
    if (reply.alone) return
    expect(reply.found).toEqual({ default: 1 })
  }
})

test('a suspect gets its turn though another queue of its worker never runs dry', async () => {
  await fill(db, 2000)
  const suspect = await enqueue(db, { queue: 'quiet' })
  await lose(suspect, 2)
  const behind = await enqueue(db, { queue: 'quiet' })
  const seen: string[] = []
  for (let i = 0; i < 200 && !(seen.includes(suspect) && seen.includes(behind)); i++) {
    seen.push(...(await hand.claim([{ limit: 5 }, { queue: 'quiet', limit: 5 }])).ids)
  }
  expect(seen).toContain(suspect)
  expect(seen).toContain(behind)
})

test('a suspect holds up neither its own line nor lower ones, though there is always higher work', async () => {
  await fill(db, 200)
  await db.sql('update rowlock.waiting set losses = 2 where id = (select min(id) from rowlock.waiting)')
  for (let i = 0; i < 25; i++) {
    await enqueue(db, { priority: 5 })
    await hand.claim([{ limit: 10 }])
  }
  expect(await db.value('select count(*)::int from rowlock.waiting where priority = 0')).toBe(1)
})

test('a suspect that waited longer than its queue promises soon goes first, whatever stands above it', async () => {
  const suspect = await enqueue(db)
  await lose(suspect, 2)
  await db.sql(`update rowlock.waiting set available_at = available_at - interval '2 minutes'`)
  const seen: string[] = []
  for (let i = 0; i < 200 && !seen.includes(suspect); i++) {
    await enqueue(db, { priority: 5 })
    seen.push(...(await hand.claim([{ limit: 10 }])).ids)
  }
  expect(seen).toContain(suspect)
})

test('a suspect that is handed back unstarted is one still', async () => {
  const suspect = await enqueue(db)
  await lose(suspect, 2)
  const [job] = (await hand.claim()).jobs
  await verb(db, 'hand_back', [held(job!)])
  expect(await db.value('select losses from rowlock.waiting where id = $1', [suspect])).toBe(2)
})

test('a suspect is passed by where it is not welcome, however long it has waited', async () => {
  const suspect = await enqueue(db)
  const behind = await enqueue(db)
  await lose(suspect, 2)
  await db.sql(`update rowlock.waiting set available_at = available_at - interval '2 minutes'`)
  expect(await hand.claim([{ alone: false }])).toMatchObject({ ids: [behind], alone: false })
  for (let i = 0; i < 50; i++) expect((await hand.claim([{ alone: false }])).ids).toEqual([])
  expect(await hand.claim([{ alone: true }])).toMatchObject({ ids: [suspect], alone: true })
})
