// Names that differ in their last byte, sequences that must not run out, and JSON that arrives as what it was sent as.

import pg from 'pg'
import postgres from 'postgres'
import { createRowlock, defineJob, handle, type Rowlock } from 'rowlock'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { silent } from '../support/ground.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('names and numbers')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const live = 'select from rowlock.waiting union all select from rowlock.running'

/** As long as it may be, and the same up to its last character. */
const twins = (bytes: number) =>
  ['a', 'b'].map((last) => `${'ü'.repeat((bytes - 2) / 2)}x${last}`) as [string, string]

test('queues, kinds and keys that differ in their last byte alone stay apart', async () => {
  const [one, two] = twins(100)
  const keys = twins(512)
  const seen: string[] = []
  const kinds = [defineJob<number>(one), defineJob<number>(two)] as const
  const ids = new Set<string>()
  for (const kind of kinds) {
    for (const queue of [one, two]) {
      for (const dedupeKey of keys) ids.add((await rowlock.enqueue(kind, 1, { queue, dedupeKey })).id)
    }
  }
  // A key is of a queue, whatever the kind.
  expect(ids.size).toBe(4)
  await rowlock.pause(two)
  const worker = rowlock.worker({
    handlers: [handle(kinds[0], ({ job }) => void seen.push(job.queue))],
    queues: { [one]: {}, [two]: {} },
    poll: 50,
    logger: silent,
  })
  await worker.start()
  await until('the open queue is empty', async () => {
    return (await db.value('select count(*)::integer from rowlock.waiting where queue = $1', [one])) === 0
  })
  await worker.stop()
  expect(seen).toEqual([one, one])
  expect(await db.value('select count(*)::integer from rowlock.waiting where queue = $1', [two])).toBe(2)
  for (const name of [`${one}y`, `${'x'.repeat(99)}ü`]) {
    await expect(rowlock.enqueue(kinds[0], 1, { queue: name })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  }
  await db.sql('delete from rowlock.waiting; delete from rowlock.dedupe')
})

test('schemas whose names differ in their last byte alone are two installations', async () => {
  const [one, two] = ['a', 'b'].map((last) =>
    createRowlock({ connectionString: db.url, schema: `${'s'.repeat(62)}${last}` }),
  )
  const note = defineJob<number>('note')
  await one!.migrate()
  await two!.migrate()
  const { id } = await one!.enqueue(note, 1)
  expect(await two!.job(id)).toBeNull()
  await one!.close()
  await two!.close()
})

test('no sequence moves but for what it numbers, and none ends at 32 bits', async () => {
  const sequences = async (): Promise<Record<string, { type: string; last: number }>> =>
    Object.fromEntries(
      (
        await db.sql(
          `select sequencename as name, data_type::text as type, coalesce(last_value, 0)::text as last
             from pg_sequences where schemaname = 'rowlock'`,
        )
      ).map(({ name, type, last }) => [name, { type, last: Number(last) }]),
    )
  const job = defineJob<number>('counted')
  const before = await sequences()
  for (const { type } of Object.values(before)) expect(type).toBe('bigint')
  await rowlock.enqueueMany(
    Array.from({ length: 2_000 }, (_, n) => job.with(n, { dedupeKey: `k${n % 500}` })),
  )
  await rowlock.enqueueMany(
    Array.from({ length: 2_000 }, (_, n) => job.with(n, { dedupeKey: `k${n % 500}` })),
  )
  const worker = rowlock.worker({
    handlers: [handle(job, () => {})],
    poll: 50,
    heartbeat: 100,
    maintenance: 100,
    logger: silent,
  })
  await worker.start()
  await until('all is done', async () => (await db.sql(live)).length === 0)
  await db.sql('select rowlock.reap(), rowlock.sweep(), rowlock.make_days()')
  await worker.stop()
  const after = await sequences()
  const moved = Object.keys(after).filter((name) => after[name]!.last !== before[name]!.last)
  expect(moved).toEqual(['job_id'])
  // One for each job that was asked for, at most: a bigint has enough of them for that.
  expect(after.job_id!.last - before.job_id!.last).toBeLessThanOrEqual(4_000)
})

test('JSON of every type is stored as that type, whoever brings it', async () => {
  const job = defineJob<unknown, unknown>('typed')
  const values = ['text', '"text"', [1], 5, null, true, {}, '[1]']
  const sql = postgres(db.url, { max: 1, onnotice: () => {} })
  const client = new pg.Client({ connectionString: db.url })
  await client.connect()
  const doors: Record<string, (value: unknown) => Promise<string>> = {
    one: async (value) => (await rowlock.enqueue(job, value)).id,
    many: async (value) => (await rowlock.enqueueMany([job.with(value)]))[0]!.id,
    pg: async (value) => (await rowlock.in(client).enqueue(job, value)).id,
    'postgres.js': async (value) => {
      const tx = {
        query: async (text: string, args: unknown[] = []) => ({
          rows: [...(await sql.unsafe(text, args as never[]))],
        }),
      }
      return (await rowlock.in(tx).enqueue(job, value)).id
    },
    SQL: async (value) =>
      (await db.sql(`select id::text from rowlock.enqueue('typed', $1::jsonb)`, [JSON.stringify(value)]))[0]
        .id,
  }
  const sent: [string, unknown][] = []
  for (const door of Object.values(doors)) for (const value of values) sent.push([await door(value), value])
  for (const [id, value] of sent) {
    const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    const [row] = await db.sql(
      'select jsonb_typeof(input) as type, input from rowlock.waiting where id = $1',
      [id],
    )
    expect([value, row.type]).toEqual([value, type])
    expect((await rowlock.job(id))!.input).toEqual(value)
  }
  const worker = rowlock.worker({ handlers: [handle(job, ({ input }) => input)], poll: 50, logger: silent })
  await worker.start()
  await until('all is done', async () => (await db.sql(live)).length === 0)
  await worker.stop()
  for (const [id, value] of sent) expect((await rowlock.job(id))!.result).toEqual(value)
  await client.end()
  await sql.end()
})
