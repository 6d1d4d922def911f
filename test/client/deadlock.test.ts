// Two bulk calls with the same keys in opposite order, each over several statements of one transaction.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
let clients: Rowlock[]
beforeAll(async () => {
  db = await rowlockDatabase('client deadlock')
  clients = [1, 2].map(() => createRowlock({ connectionString: db.url }))
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await db.drop()
})

const note = defineJob<number>('note')
const keys = (round: number) => Array.from({ length: 2_500 }, (_, n) => `${round}:${n}`)
const requests = (of: readonly string[]) => of.map((dedupeKey, n) => note.with(n, { dedupeKey }))

test('both end, each key has one job, and each answer names it', async () => {
  for (let round = 0; round < 6; round++) {
    const ordered = keys(round)
    const [there, back] = await Promise.all([
      clients[0]!.enqueueMany(requests(ordered)),
      clients[1]!.enqueueMany(requests(ordered.toReversed())),
    ])
    expect(there!.map(({ id }) => id)).toEqual(back!.map(({ id }) => id).toReversed())
    expect([...there!, ...back!].filter(({ created }) => created)).toHaveLength(ordered.length)
  }
  expect(await db.value('select count(*)::int from rowlock.waiting')).toBe(6 * 2_500)
}, 240_000)

test('a bulk call of more than one statement on a client without a transaction says what is missing', async () => {
  const client = await db.session()
  const many = Array.from({ length: 1_001 }, (_, n) => note.with(n))
  await expect(clients[0]!.in(client).enqueueMany(many)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    path: 'tx',
  })
  expect(await db.value(`select count(*)::int from rowlock.waiting where dedupe_key is null`)).toBe(0)
})
