// Outcomes: written in batches, repeated until they are answered, and none of them holds up the others.

import { randomUUID } from 'node:crypto'
import { defineJob, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Database } from '../../src/engine/database.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { Reporter } from '../../src/worker/reporter.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('reporter')
  await rig.db.sql('create sequence tries')
})
beforeEach(() => rig.db.sql('alter sequence tries restart'))
afterEach(async () => {
  await rig.db.sql('drop trigger if exists refuse on rowlock.running')
  await rig.db.sql('drop trigger if exists refuse on rowlock.finished')
  await rig.rest()
})
afterAll(() => rig.drop())

const job = defineJob<string>('job')

/** The server refuses to end jobs, while or where this holds. A sequence, to count by, survives rollbacks. */
async function refuse(sqlstate: string, when: string, at = 'delete on rowlock.running'): Promise<void> {
  await rig.db.sql(`create or replace function refuse() returns trigger language plpgsql as $$
    begin
      if ${when} then
        raise exception 'refused for the test' using errcode = '${sqlstate}';
      end if;
      return coalesce(new, old);
    end $$`)
  await rig.db.sql(`create trigger refuse before ${at} for each row execute function refuse()`)
}

test.each(['40001', '40P01', '55P03', '53300', '57014', '57P01', '08006', '25006', '53200'])(
  'an outcome that is refused for the moment (%s) is tried again, and is no failure',
  async (sqlstate) => {
    await refuse(sqlstate, `nextval('public.tries') <= 2`)
    const lost: unknown[] = []
    let runs = 0
    const worker = await rig.start({ handlers: [handle(job, () => void runs++)] })
    worker.on('outcome_lost', (facts) => lost.push(facts))
    const { id } = await rig.rowlock.enqueue(job, '')
    expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, failures: 0, attempts: [] })
    expect(runs).toBe(1)
    expect(lost).toEqual([])
  },
)

describe.each(['23514', 'P0001', '22P02', '54000'])(
  'one completion that is refused for good (%s)',
  (sqlstate) => {
    test('holds up none of the others, and ends as a failure', async () => {
      await refuse(sqlstate, `new.state = 'done' and new.input = '"bad"'`, 'insert on rowlock.finished')
      await rig.start({
        handlers: [handle(job, () => {})],
        flush: 20,
        queues: { default: { concurrency: 50 } },
      })
      const inputs = Array.from({ length: 40 }, (_, n) => (n === 17 ? 'bad' : 'good'))
      const all = await rig.rowlock.enqueueMany(
        inputs.map((input) => job.with(input, { retry: { maxAttempts: 1 } })),
      )
      for (const [n, { id }] of all.entries()) if (n !== 17) await rig.becomes(id, 'done')
      expect(await rig.becomes(all[17]!.id, 'dead_letter')).toMatchObject({ cause: 'outcome_refused' })
    })
  },
)

test('an outcome that is refused in every form is kept, and the others go on', async () => {
  await refuse('23514', `old.input = '"bad"'`)
  const worker = await rig.start({ handlers: [handle(job, () => {})] })
  const bad = await rig.rowlock.enqueue(job, 'bad')
  for (let n = 0; n < 3; n++) {
    const { id } = await rig.rowlock.enqueue(job, 'good')
    await rig.becomes(id, 'done')
  }
  expect((await rig.rowlock.job(bad.id))?.state).toBe('running')
  await worker.stop()
  expect((await rig.rowlock.job(bad.id))?.state).toBe('running')
  await rig.db.sql('drop trigger refuse on rowlock.running')
  await rig.db.sql('select rowlock.reap(10)')
  expect((await rig.rowlock.job(bad.id))?.state).toBe('queued')
})

test('while outcomes pile up nothing more is claimed', async () => {
  let isOpen = false
  await rig.db.sql('create table if not exists gate (is_open boolean)')
  await rig.db.sql('truncate gate')
  await refuse('40001', 'not exists (select from public.gate)')
  let runs = 0
  await rig.start({
    handlers: [
      handle(job, () => {
        runs++
      }),
    ],
    queues: { default: { concurrency: 1_000, prefetch: 100 } },
  })
  for (let n = 0; n < 5; n++) await rig.rowlock.enqueueMany(Array.from({ length: 1_000 }, () => job.with('')))
  await until('it has stopped claiming', async () => {
    const before = runs
    await rig.db.sql('select pg_sleep(0.3)')
    return runs > 0 && runs === before
  })
  expect(runs).toBeLessThan(4_500)
  await rig.db.sql('insert into gate values (true)')
  isOpen = true
  await rig.idle()
  expect(isOpen && runs).toBe(5_000)
})

test('a worker that is stopped without grace still writes what its jobs came to', async () => {
  // Without chance the sixth try comes 1.55 s after the first: everything else at a stop gets one second, this five.
  const chance = vi.spyOn(Math, 'random').mockReturnValue(0)
  await refuse('40001', `nextval('public.tries') <= 5`)
  let runs = 0
  const worker = await rig.start({ handlers: [handle(job, () => void runs++)] })
  const { id } = await rig.rowlock.enqueue(job, '')
  await until('it has run', () => runs === 1)
  await worker.stop({ grace: 0 })
  chance.mockRestore()
  expect(await rig.rowlock.job(id)).toMatchObject({ state: 'done', attempt: 1 })
})

test('outcomes that are refused in every form count as piled up', async () => {
  let refused = 0
  // Played: to have the server refuse thousands, one by one, takes too long.
  const database = {
    call: async () => {
      refused++
      throw Object.assign(new Error('refused for the test'), { code: '23514', severity: 'ERROR' })
    },
  } as unknown as Database
  const nothing = () => {}
  const reporter = new Reporter({
    database,
    flushMs: 0,
    timeoutMs: 1_000,
    onWritten: nothing,
    onLost: nothing,
    onError: nothing,
    onFlushed: nothing,
  })
  const report = (n: number) => reporter.report({ verb: 'complete', id: `${n}`, claim_id: 'c', attempt: 1 })
  for (let n = 0; n < 1_999; n++) report(n)
  await reporter.flushed()
  expect(refused).toBeGreaterThan(1_999)
  expect(reporter.isFull).toBe(false)
  report(1_999)
  await reporter.flushed()
  expect(reporter.isFull).toBe(true)
  expect(reporter.holds('0', 'c')).toBe(true)
  reporter.stop()
})

test('a batch of large results is cut into statements that the server can take', async () => {
  await rig.start({
    handlers: [handle(job, () => 'x'.repeat(60_000))],
    flush: 50,
    queues: { default: { concurrency: 200 } },
  })
  const all = await rig.rowlock.enqueueMany(Array.from({ length: 150 }, () => job.with('')))
  await rig.idle()
  expect(await rig.db.value(`select count(*)::integer from rowlock.finished where state = 'done'`)).toBe(
    all.length,
  )
})

test('no statement is larger than one call may be, however large the results', async () => {
  const sizes: number[] = []
  const database = {
    call: async (_verb: string, _args: string, [json]: string[]) => {
      sizes.push(json!.length)
      return { completed: JSON.parse(json!).complete.map(({ id }: { id: string }) => id), moved: [] }
    },
  } as unknown as Database
  const reporter = new Reporter({
    database,
    flushMs: 1,
    timeoutMs: 1_000,
    onWritten: () => {},
    onLost: () => {},
    onError: () => {},
    onFlushed: () => {},
  })
  const result = JSON.stringify('x'.repeat(60_000))
  for (let n = 1; n <= 150; n++) {
    reporter.report({ verb: 'complete', id: String(n), claim_id: randomUUID(), attempt: 1, result })
  }
  await reporter.flushed()
  expect(Math.max(...sizes)).toBeLessThan(LIMITS.bytesPerCall.max * 1.05)
  expect(sizes.length).toBeGreaterThan(1)
})

test('a result that a queue without history forgets is not missed', async () => {
  await rig.rowlock.setQueue('brief', { retentionDays: 0 })
  const lost: unknown[] = []
  const worker = await rig.start({ handlers: [handle(job, () => 'x')], queues: { brief: {} } })
  worker.on('outcome_lost', (facts) => lost.push(facts))
  const { id } = await rig.rowlock.enqueue(job, '', { queue: 'brief' })
  await until('it is gone', async () => (await rig.rowlock.job(id)) === null)
  expect(lost).toEqual([])
})
