// Imports: all lines or none, or step by step under a key; whatever is cut off in the middle, each line is a job once.

import { hash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { Database } from '../../src/engine/database.ts'
import { ImportStopped, importTogether, importWithKey, type ReadLines } from '../../src/engine/import.ts'
import { defineJob } from '../../src/ground/job.ts'
import { toWire, type Wire } from '../../src/ground/request.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

const counted = defineJob<number>('counted')
const BEGIN = hash('sha256', '')

let db: TestRowlock
let proxy: PostgresProxy
let remote: Database
beforeAll(async () => {
  db = await rowlockDatabase('import')
  proxy = await startProxy(db.url)
  remote = new Database({ connectionString: proxy.url, maxConnections: 2 })
})
afterEach(async () => {
  await db.sql('delete from rowlock.waiting; delete from rowlock.dedupe; delete from rowlock.import')
})
afterAll(async () => {
  await remote.close()
  await proxy.close()
  await db.drop()
})

/** Lines 1 to n, each a job whose input is its number; every tenth is blank. `write` makes another of it. */
async function* file(
  n: number,
  write: (line: number) => Wire = (line) => toWire(counted.with(line)) as Wire,
  onLine?: (line: number) => unknown,
): AsyncGenerator<ReadLines, void> {
  let digest = BEGIN
  for (let line = 1; line <= n; line++) {
    await onLine?.(line)
    const wire = line % 10 === 0 ? undefined : write(line)
    digest = hash('sha256', digest + (wire?.job ?? ''))
    yield { line, digest, wire }
  }
}

const jobsOf = (n: number) => n - Math.floor(n / 10)
const key = { key: 'k', digest: BEGIN }
const found = () => db.sql('select input from rowlock.waiting order by input')
/** Each line is there once. */
async function expectEach(n: number): Promise<void> {
  const lines = (await found()).map(({ input }) => input)
  expect(lines).toEqual(Array.from({ length: n }, (_, i) => i + 1).filter((line) => line % 10 !== 0))
}
/** Fails once, as if somebody had pulled the plug between two lines. */
const stopAt = (at: number) => (line: number) => {
  if (line === at) throw new Error('cut off')
}

describe('an import without a key', () => {
  test('is one transaction, however many lines there are', async () => {
    const seen: number[] = []
    const reached = await importTogether(db.database, file(2_500), {
      onProgress: ({ lines }) => seen.push(lines),
    })
    expect(reached).toEqual({ lines: 2_500, jobs: jobsOf(2_500), existing: 0, dropped: 0 })
    expect(seen).toEqual([1_000, 2_000, 2_500])
    const [{ transactions }] = await db.sql(
      'select count(distinct xmin::text) as transactions from rowlock.waiting',
    )
    expect(Number(transactions)).toBe(1)
    await expectEach(2_500)
  })

  test('that is cut off has done nothing', async () => {
    await expect(importTogether(db.database, file(2_500, undefined, stopAt(2_200)))).rejects.toThrow(
      'cut off',
    )
    const stop = new AbortController()
    const stopping = importTogether(db.database, file(5_000), {
      signal: stop.signal,
      onProgress: ({ lines }) => lines >= 2_000 && stop.abort(),
    })
    await expect(stopping).rejects.toBeInstanceOf(ImportStopped)
    expect(await found()).toEqual([])
  })

  test('whose connection is lost in the middle says that nothing was enqueued', async () => {
    const lost = importTogether(
      remote,
      file(5_000, undefined, (line) => line === 3_500 && proxy.reset()),
    )
    await expect(lost).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringMatching(/nothing was enqueued/),
    })
    expect(await found()).toEqual([])
  })

  test('whose answer to the commit is lost finds out that it was committed', async () => {
    const cut = proxy.cutAnswer(/^commit$/)
    expect(await importTogether(remote, file(1_500))).toMatchObject({ lines: 1_500 })
    await cut
    await expectEach(1_500)
  })

  test('counts lines whose dedupe key a live job has', async () => {
    const keyed = (line: number) => toWire(counted.with(line, { dedupeKey: `k${line % 7}` })) as Wire
    const reached = await importTogether(db.database, file(1_200, keyed))
    expect(reached).toEqual({ lines: 1_200, jobs: 7, existing: jobsOf(1_200) - 7, dropped: 0 })
  })
})

describe('an import with a key', () => {
  test('commits step by step, and goes on behind the last step', async () => {
    await expect(importWithKey(db.database, key, file(4_000, undefined, stopAt(3_456)))).rejects.toThrow(
      'cut off',
    )
    await expectEach(3_000)
    const seen: number[] = []
    const rest = await importWithKey(db.database, key, file(4_000), {
      onProgress: ({ lines }) => seen.push(lines),
    })
    expect(rest).toEqual({
      lines: 4_000,
      jobs: jobsOf(4_000),
      existing: 0,
      dropped: 0,
      from: 3_000,
      wasFinished: false,
    })
    expect(seen).toEqual([3_000, 4_000])
    await expectEach(4_000)
  })

  test('that is finished enqueues nothing more', async () => {
    await importWithKey(db.database, key, file(1_200))
    const again = await importWithKey(db.database, key, file(1_200))
    expect(again).toMatchObject({ lines: 1_200, jobs: jobsOf(1_200), wasFinished: true })
    await expectEach(1_200)
  })

  test.each([
    [
      'a line before is another',
      2_500,
      (line: number) => (line === 17 ? 99 : line),
      /first 2,000 lines are not those/,
    ],
    ['it has fewer lines', 1_500, (line: number) => line, /has only 1500/],
  ])('refuses the file when %s', async (_, length, input, message) => {
    await expect(importWithKey(db.database, key, file(3_000, undefined, stopAt(2_001)))).rejects.toThrow(
      'cut off',
    )
    const before = await found()
    const write = (line: number) => toWire(counted.with(input(line))) as Wire
    await expect(importWithKey(db.database, key, file(length, write))).rejects.toMatchObject({
      code: 'IMPORT_CHANGED',
      message: expect.stringMatching(message),
    })
    expect(await found()).toEqual(before)
  })

  test('refuses what was added to a file that is finished, and other options', async () => {
    await importWithKey(db.database, key, file(1_200))
    await expect(importWithKey(db.database, key, file(1_201))).rejects.toMatchObject({
      code: 'IMPORT_CHANGED',
    })
    await expect(importWithKey(db.database, key, file(3_000))).rejects.toMatchObject({
      code: 'IMPORT_CHANGED',
    })
    const other = { key: 'other', digest: BEGIN }
    await expect(importWithKey(db.database, other, file(1_200, undefined, stopAt(1)))).rejects.toThrow(
      'cut off',
    )
    const options = importWithKey(db.database, { ...other, digest: 'of other options' }, file(1_200))
    await expect(options).rejects.toMatchObject({ message: expect.stringMatching(/other options/) })
    await expectEach(1_200)
  })

  test('by two processes at once does each line once, wherever they cut it', async () => {
    const unequal = (line: number) =>
      toWire(counted.with(line, { metadata: { pad: 'x'.repeat(line % 3_000) } })) as Wire
    const ends = await Promise.all(
      [db.database, remote].map((database, n) =>
        importWithKey(
          database,
          key,
          file(9_000, unequal, () => (n === 0 ? undefined : new Promise((next) => setImmediate(next)))),
        ),
      ),
    )
    expect(ends.map(({ lines }) => lines)).toEqual([9_000, 9_000])
    await expectEach(9_000)
  })

  test.each([/import_jobs/, /begin_import/, /end_import/])(
    'loses nothing and doubles nothing when the answer to %s is lost',
    async (verb) => {
      const cut = proxy.cutAnswer(verb)
      const work = () => importWithKey(remote, key, file(2_500))
      const ended = await work().catch(work)
      await cut
      expect(ended).toMatchObject({ lines: 2_500, jobs: jobsOf(2_500) })
      await expectEach(2_500)
    },
  )

  test('waits out a database that is away for a moment', async () => {
    const work = importWithKey(
      remote,
      key,
      file(3_000, undefined, async (line) => {
        if (line !== 1_500) return
        await proxy.set('refuse')
        proxy.reset()
        void until('it has tried', () => proxy.open === 0).then(() => proxy.set('pass'))
      }),
    )
    expect(await work).toMatchObject({ lines: 3_000 })
    await expectEach(3_000)
  })
})

describe('in SQL', () => {
  const begin = () => db.value(`select rowlock.begin_import('k', 'd0')`)
  const step = (args: string) => db.value(`select rowlock.import_jobs('k', ${args})`)

  test('a step takes jobs that nobody has checked, and says which one is wrong', async () => {
    expect(await begin()).toMatchObject({ key: 'k', lines: 0, jobs: 0, digest: 'd0', ended_at: null })
    expect(await step(`0, 'd0', '[{"kind": "counted", "input": 1}]', 1, 'd1'`)).toMatchObject({
      lines: 1,
      jobs: 1,
      digest: 'd1',
      accepted: true,
      existing: 0,
      dropped: 0,
    })
    await expect(step(`1, 'd1', '[{"kind": "counted"}]', 2, 'd2'`)).rejects.toMatchObject({ code: 'RL001' })
    expect(await db.value(`select lines from rowlock.import`)).toBe('1')
  })

  test('a step from elsewhere changes nothing; one with another digest is refused', async () => {
    await begin()
    await step(`0, 'd0', '[{"kind": "counted", "input": 1}]', 1, 'd1'`)
    expect(await step(`0, 'd0', '[{"kind": "counted", "input": 1}]', 1, 'd1'`)).toMatchObject({
      accepted: false,
      lines: 1,
    })
    expect(await db.refusal(`select rowlock.import_jobs('k', 1, 'other', '[]', 2, 'd2')`)).toBe('RL080')
    expect(await db.refusal(`select rowlock.end_import('k', 1, 'other')`)).toBe('RL080')
    expect(await db.value(`select rowlock.end_import('k', 0, 'd0')`)).toMatchObject({ accepted: false })
    expect(await db.value(`select rowlock.end_import('k', 1, 'd1')`)).toMatchObject({ accepted: true })
    expect(await step(`1, 'd1', '[{"kind": "counted", "input": 2}]', 2, 'd2'`)).toMatchObject({
      accepted: false,
    })
    expect(await found()).toEqual([{ input: 1 }])
  })

  test.each([
    [`select rowlock.import_jobs('none', 0, '', '[]', 1, '')`, 'RL081'],
    [`select rowlock.end_import('none', 0, '')`, 'RL081'],
    [`select rowlock.begin_import('', '')`, 'RL001'],
    [`select rowlock.begin_import(' k', '')`, 'RL001'],
    [`select rowlock.begin_import(repeat('k', 513), '')`, 'RL001'],
    [`select rowlock.begin_import('k', null)`, 'RL001'],
    [`select rowlock.import_jobs('k', 5, '', '[]', 4, '')`, 'RL001'],
  ])('%s is refused with %s', async (text, code) => {
    expect(await db.refusal(text)).toBe(code)
  })
})
