// A short life of jobs under each setting that a role can have and each switch that a planner has: nothing that Rowlock
// promises may hang on them. What cannot work says so.

import {
  createRowlock,
  defineJob,
  fixed,
  handle,
  handleInTransaction,
  permanent,
  type Rowlock,
  type Worker,
} from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { codeOf, type Ground, ground, messageOf, silent } from '../support/ground.ts'
import { until } from '../support/until.ts'

let at: Ground
beforeAll(async () => {
  at = await ground('hostile')
  await at.client().migrate()
  await at.sql('create table business (job_id bigint, "when" timestamptz)')
})
const workers: Worker[] = []
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop({ grace: 0 })))
  const tables = ['waiting', 'running', 'finished', 'dead_letter', 'attempt', 'payload', 'dedupe', 'queue']
  await at.sql(tables.map((table) => `delete from rowlock.${table}`).join(';'))
  await at.sql('truncate business')
})
afterAll(() => at.drop())

const plain = defineJob<unknown, unknown>('plain')
const flaky = defineJob<number>('flaky', { retry: { backoff: fixed(0) } })
const broken = defineJob<null>('broken')
const written = defineJob<null>('written', { retry: { backoff: fixed(0) } })

const SETTINGS: readonly (readonly [string, readonly string[]])[] = [
  ['serializable', [`default_transaction_isolation = 'serializable'`]],
  ['repeatable read', [`default_transaction_isolation = 'repeatable read'`]],
  ['deferrable', ['default_transaction_deferrable = on']],
  ['200 ms for a statement', [`statement_timeout = '200ms'`]],
  ['200 ms for an idle transaction', [`idle_in_transaction_session_timeout = '200ms'`]],
  ['200 ms for an idle session', [`idle_session_timeout = '200ms'`]],
  ['200 ms for a lock', [`lock_timeout = '200ms'`]],
  ['an empty search_path', [`search_path = ''`]],
  ['Asia/Kathmandu', [`timezone = 'Asia/Kathmandu'`]],
  ['Australia/Lord_Howe', [`timezone = 'Australia/Lord_Howe'`]],
  ['strings of old', ['standard_conforming_strings = off', 'escape_string_warning = on']],
  ['bytes of old', [`bytea_output = 'escape'`]],
  ['German dates', [`datestyle = 'German, DMY'`]],
  ['postgres_verbose intervals', [`intervalstyle = 'postgres_verbose'`]],
  ['row security', ['row_security = on']],
  ['an old client encoding', [`client_encoding = 'latin1'`]],
  ['commits that wait for nothing', ['synchronous_commit = off']],
  ['null as text', ['transform_null_equals = on']],
  ['few digits', ['extra_float_digits = -15']],
  ['JIT for everything', ['jit = on', 'jit_above_cost = 0', 'jit_optimize_above_cost = 0']],
  ['generic plans', ['plan_cache_mode = force_generic_plan']],
  ['custom plans', ['plan_cache_mode = force_custom_plan']],
  ...['seqscan', 'indexscan', 'indexonlyscan', 'bitmapscan', 'tidscan', 'sort', 'nestloop'].map(
    (name) => [`no ${name}`, [`enable_${name} = off`]] as const,
  ),
  ['no hash or merge join', ['enable_hashjoin = off', 'enable_mergejoin = off', 'enable_material = off']],
  ['no hash aggregate or memoize', ['enable_hashagg = off', 'enable_memoize = off']],
  ['no pruning', ['enable_partition_pruning = off', `constraint_exclusion = 'off'`]],
  ['the least memory', [`work_mem = '64kB'`, 'hash_mem_multiplier = 1']],
]

/** Jobs that end in each way there is, seen from outside. */
async function lives(rowlock: Rowlock): Promise<void> {
  const inputs = [null, 'text', [1], { a: '\\\'"$$ ☃ 😀' }, 12.25, true, 'x'.repeat(20_000)]
  const seen: unknown[] = []
  const all = await rowlock.enqueueMany(inputs.map((input) => plain.with(input)))
  const again = await rowlock.enqueue(flaky, 2, { dedupeKey: 'one', metadata: { a: "it's" } })
  expect(await rowlock.enqueue(flaky, 2, { dedupeKey: 'one' })).toEqual({ id: again.id, created: false })
  const lost = await rowlock.enqueue(broken, null)
  const tx = await rowlock.enqueue(written, null)
  const when = new Date('2031-07-06T05:04:03.002Z')
  const later = await rowlock.enqueue(plain, 'later', { availableAt: when })
  expect((await rowlock.job(later.id))!.availableAt).toEqual(when)
  expect(await rowlock.cancel(later.id, { actor: 'ada', reason: '\\' })).toBe('cancelled')
  const worker = rowlock.worker({
    handlers: [
      handle(plain, ({ input }) => {
        seen.push(input)
        return input
      }),
      handle(flaky, ({ job, input }) => {
        if (job.attempt < input) throw new Error('\\not yet')
      }),
      handle(broken, () => {
        throw permanent(new Error('never'))
      }),
      handleInTransaction(written, async ({ tx, job }) => {
        await new Promise((resolve) => setTimeout(resolve, 300))
        await tx.query('insert into public.business values ($1, now())', [job.id])
      }),
    ],
    poll: 50,
    lease: '1m',
    heartbeat: 100,
    maintenance: 100,
    logger: silent,
  })
  workers.push(worker)
  await worker.start()
  const becomes = (id: string, state: string) =>
    until(`job ${id} is ${state}`, async () => {
      const job = await rowlock.job(id)
      return job?.state === state ? job : undefined
    })
  for (const [n, { id }] of all.entries()) {
    const sent = inputs[n]
    expect(await becomes(id, 'done')).toMatchObject({ input: sent, attempt: 1 })
  }
  expect(seen).toHaveLength(inputs.length)
  expect(await becomes(again.id, 'done')).toMatchObject({ attempt: 2, failures: 1, metadata: { a: "it's" } })
  expect(await becomes(lost.id, 'failed')).toMatchObject({ attempts: [{ outcome: 'failed' }] })
  expect(await becomes(tx.id, 'done')).toMatchObject({ attempt: 1 })
  expect(await at.sql('select job_id from business')).toEqual([{ job_id: tx.id }])
  expect(worker.status.workerId).not.toBeNull()
  await worker.stop()
  expect(worker.status.state).toBe('stopped')
}

test.each(SETTINGS)('%s: jobs end as they should', async (_, settings) => {
  const n = SETTINGS.findIndex(([name]) => name === _)
  const url = await at.role(
    `hostile${n}`,
    settings.map((setting) => `set ${setting}`),
  )
  const name = new URL(url).username
  await at.sql(`grant usage on schema rowlock to ${name}; grant insert on business to ${name}`)
  await at.sql(`grant execute on all functions in schema rowlock to ${name}`)
  await at.sql(`grant select on all tables in schema rowlock to ${name}`)
  await lives(at.client({ url }))
})

test('read only: what can be read is read, and what writes says why it does not', async () => {
  const { id } = await at.client().enqueue(plain, 1)
  const url = await at.role('hostile_reader', ['set default_transaction_read_only = on'])
  const name = new URL(url).username
  await at.sql(`grant usage on schema rowlock to ${name}`)
  await at.sql(`grant execute on all functions in schema rowlock to ${name}`)
  await at.sql(`grant select on all tables in schema rowlock to ${name}`)
  const rowlock = at.client({ url })
  expect(await rowlock.job(id)).toMatchObject({ state: 'queued' })
  for (const work of [
    () => rowlock.enqueue(plain, 1),
    () => rowlock.cancel(id),
    () => rowlock.pause('default'),
    () => rowlock.runNow(id),
  ]) {
    expect([String(work), await codeOf(work())]).toEqual([String(work), 'DATABASE_UNAVAILABLE'])
    expect(await messageOf(work())).toMatch(/takes no writes.*default_transaction_read_only/s)
  }
  expect(await rowlock.job(id)).toMatchObject({ state: 'queued' })
})

test('a worker of a role that is made read only for a while waits, and its results are not lost', async () => {
  const url = await at.role('hostile_later')
  const name = new URL(url).username
  await at.sql(`grant usage on schema rowlock to ${name}`)
  await at.sql(`grant execute on all functions in schema rowlock to ${name}`)
  await at.sql(`grant select on all tables in schema rowlock to ${name}`)
  let end: () => void = () => {}
  let runs = 0
  const worker = createRowlock({ connectionString: url }).worker({
    handlers: [
      handle(plain, () => {
        runs++
        return new Promise((resolve) => {
          end = () => resolve('kept')
        })
      }),
    ],
    poll: 50,
    lease: '2m',
    logger: silent,
  })
  workers.push(worker)
  const { id } = await at.client().enqueue(plain, 1)
  await worker.start()
  await until('it runs', () => runs === 1)
  await at.admin(`alter role ${name} set default_transaction_read_only = on`)
  const cut = `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${name}'`
  await at.admin(cut)
  end()
  await until('it was refused', () => at.admin(cut).then((rows) => rows.length > 0))
  expect((await at.client().job(id))?.state).toBe('running')
  await at.admin(`alter role ${name} reset default_transaction_read_only`)
  await at.admin(cut)
  await until('it is done', async () => (await at.client().job(id))?.state === 'done')
  expect(await at.client().job(id)).toMatchObject({ attempt: 1, result: 'kept' })
  expect(runs).toBe(1)
})
