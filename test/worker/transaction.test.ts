// Handlers in a transaction: their writes and the end of their job commit together, or not at all.

import {
  cancel,
  defineJob,
  fixed,
  handle,
  handleInTransaction,
  isAborted,
  isRowlockError,
  snooze,
} from 'rowlock'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('transaction')
  await rig.db.sql('create table business (job_id bigint unique deferrable initially deferred, note text)')
  proxy = await startProxy(rig.db.url)
})
beforeEach(() => rig.db.sql('truncate business'))
afterEach(async () => {
  await rig.rest()
  await proxy.set('pass')
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<string, string>('write', { retry: { backoff: fixed('1h') } })
const other = defineJob('other')
const sleeping = `select count(*)::integer from pg_stat_activity
  where datname = current_database() and query like 'select pg_sleep(60)%' and state = 'active'`
/** Far sooner than by itself; the server lets go of the job's row a moment before it says that it sleeps no more. */
const asleepNoMore = () => until('it sleeps no more', async () => (await rig.db.value(sleeping)) === 0)
/** One that waited too long for its connection has gone back to its line first. */
const begun = <Attempt extends { readonly outcome: string }>({
  attempts,
}: {
  attempts: readonly Attempt[]
}) => attempts.filter(({ outcome }) => outcome !== 'handed_back')
const written = () => rig.db.value<number>('select count(*)::integer from business')
type Context = Parameters<Parameters<typeof handleInTransaction<typeof job>>[1]>[0]
const write = ({ tx, job }: Context, note = '') =>
  tx.query('insert into business (job_id, note) values ($1, $2)', [job.id, note])

test('business writes and the completion commit together', async () => {
  let inside = -1
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    inside = await written()
    return 'result'
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'done')
  expect(row.result).toBe('result')
  expect(inside).toBe(0)
  expect(await written()).toBe(1)
  expect(await rig.db.sql(`select b.xmin = f.xmin as together from business b, rowlock.finished f`)).toEqual([
    { together: true },
  ])
})

test('a throw rolls the writes back and records the failure', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    throw new Error('changed my mind')
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  const row = await rig.becomes(id, 'retryable')
  expect(row).toMatchObject({
    failures: 1,
    attempts: [{ outcome: 'failed', error: { message: 'changed my mind' } }],
  })
  expect(await written()).toBe(0)
})

test('a decision that is returned commits with the writes', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context, context.input)
    return context.input === 'snooze' ? snooze('1h') : cancel('enough')
  })
  await rig.start({ handlers: [handler] })
  const [one, two] = await rig.rowlock.enqueueMany([job.with('snooze'), job.with('cancel')])
  await rig.becomes(two!.id, 'cancelled')
  await until(
    'the other is snoozed',
    async () => (await rig.rowlock.job(one!.id))?.attempts[0]?.outcome === 'snoozed',
  )
  expect(await written()).toBe(2)
})

test('an error of SQL that the handler swallows cannot commit half of its work', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    await context.tx.query('select 1 / 0').catch(() => {})
    return 'fine'
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect(await rig.becomes(id, 'retryable')).toMatchObject({ cause: '25P02' })
  expect(await written()).toBe(0)
})

test('a constraint that speaks up at the commit is a failure of the job', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    await write(context)
    return 'fine'
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect(await rig.becomes(id, 'retryable')).toMatchObject({ cause: '23505', failures: 1 })
  expect(await written()).toBe(0)
})

const WAYS = [
  ['sleep', 'timed_out', 'timeout', '2s'],
  ['throw', 'failed', 'Error', '1m'],
  ['fail', 'failed', '25P02', '1m'],
  ['commit', 'failed', '23505', '1m'],
] as const

test('a reaper that sweeps without a pause takes no failure or timeout for a session that died', async () => {
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    if (context.input === 'throw') throw new Error('of its own')
    // The server lets go of the job's row at the error itself, and the handler goes on.
    if (context.input === 'fail') await context.tx.query('select 1 / 0').catch(() => {})
    else if (context.input === 'commit') await write(context)
    else await context.tx.query('select pg_sleep(60)')
    return ''
  })
  await rig.start({ handlers: [handler], queues: { default: { concurrency: 10 } } })
  let isDone = false
  const sweeping = Promise.all(
    [1, 2].map(async () => {
      // Ends with the database when the test fails.
      while (!isDone)
        await rig.db.sql('select rowlock.reap(100)').catch(() => {
          isDone = true
        })
    }),
  )
  const way = (n: number) => WAYS[n % WAYS.length]!
  const requests = Array.from({ length: 60 }, (_, n) => job.with(way(n)[0], { timeout: way(n)[3] }))
  const all = await rig.rowlock.enqueueMany(requests)
  for (const [n, { id }] of all.entries()) {
    const [, outcome, cause] = way(n)
    expect(begun(await rig.becomes(id, 'retryable'))).toMatchObject([{ outcome, cause }])
  }
  isDone = true
  await sweeping
  expect(await written()).toBe(0)
})

test('a result that its schema refuses rolls the writes back', async () => {
  const strict = defineJob('strict', { result: z.string() })
  const handler = handleInTransaction(strict, async ({ tx, job }) => {
    await tx.query('insert into business (job_id) values ($1)', [job.id])
    return 1 as never
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(strict, null)
  expect(await rig.becomes(id, 'failed')).toMatchObject({ cause: 'validation' })
  expect(await written()).toBe(0)
})

test('what a handler does with its transaction after its end is refused', async () => {
  let late: Promise<unknown> = Promise.resolve()
  let go: () => void = () => {}
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const handler = handleInTransaction(job, async (context) => {
    late = gate.then(() => write(context))
    late.catch(() => {})
    return 'done before its time'
  })
  await rig.start({ handlers: [handler] })
  const { id } = await rig.rowlock.enqueue(job, '')
  await rig.becomes(id, 'done')
  go()
  await expect(late).rejects.toSatisfy((error) => isRowlockError(error, 'CLOSED'))
  expect(await written()).toBe(0)
})

test('a job that was taken away before its end commits nothing', async () => {
  const lost: unknown[] = []
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    // Stands for a reaper that did not see the lock: the claim is another's.
    await rig.db.sql('update rowlock.running set claim_id = gen_random_uuid() where id = $1', [
      context.job.id,
    ])
    return 'late'
  })
  // The mark of the session is the other owner's by now: a sweep would go by it.
  await rig.holdOffReapers()
  const worker = await rig.start({ handlers: [handler] })
  worker.on('outcome_lost', (facts) => lost.push(facts))
  const { id } = await rig.rowlock.enqueue(job, '')
  await until('the worker was told', () => lost.length > 0)
  expect(lost).toEqual([{ jobId: id, verb: 'fail' }])
  expect(await written()).toBe(0)
  expect((await rig.rowlock.job(id))?.state).toBe('running')
})

test('a session that the server ends gives its job back, although the lease lives', async () => {
  let aborted: unknown
  let calls = 0
  const handler = handleInTransaction(job, async (context) => {
    if (++calls > 1) return 'again'
    await write(context)
    const [row] = (await context.tx.query('select pg_backend_pid() as pid')).rows as { pid: number }[]
    await rig.db.sql('select pg_terminate_backend($1)', [row!.pid])
    await abortOf(context.signal)
    aborted = context.signal.reason
    return 'as if nothing had been'
  })
  await rig.start({ handlers: [handler], lease: '10m' })
  const { id } = await rig.rowlock.enqueue(job, '', { retry: { backoff: fixed(0) } })
  const row = await rig.becomes(id, 'done')
  expect(isAborted(aborted, 'lease_lost')).toBe(true)
  expect(row).toMatchObject({ attempt: 2, failures: 1, attempts: [{ outcome: 'lost' }] })
  expect(await written()).toBe(0)
})

test('one that it ends in the middle of a statement is a failure at once', async () => {
  const handler = handleInTransaction(job, async ({ tx }) => {
    await tx.query('select pg_terminate_backend(pg_backend_pid())')
    return ''
  })
  await rig.start({ handlers: [handler], lease: '10m' })
  const { id } = await rig.rowlock.enqueue(job, '')
  expect(await rig.becomes(id, 'retryable')).toMatchObject({ failures: 1 })
})

const abortOf = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })

describe('an abort', () => {
  test('by the timeout cuts a statement that runs, here and at the server', async () => {
    const handler = handleInTransaction(job, async (context) => {
      await write(context)
      await context.tx.query('select pg_sleep(60)')
      return ''
    })
    await rig.start({ handlers: [handler] })
    const { id } = await rig.rowlock.enqueue(job, '', { timeout: '2s' })
    const row = await rig.becomes(id, 'retryable')
    expect(begun(row)).toMatchObject([{ outcome: 'timed_out', cause: 'timeout' }])
    await asleepNoMore()
    expect(await written()).toBe(0)
  })

  test('by a person does the same, and holds up the outcome of no other job', async () => {
    const handler = handleInTransaction(job, async ({ tx }) => {
      await tx.query('select pg_sleep(60)')
      return ''
    })
    await rig.start({ handlers: [handler, handle(other, () => {})], heartbeat: 100 })
    const { id } = await rig.rowlock.enqueue(job, '')
    await until('it sleeps', () => rig.db.value(sleeping))
    await rig.rowlock.cancel(id)
    const beside = await rig.rowlock.enqueue(other, null)
    await rig.becomes(id, 'cancelled')
    await rig.becomes(beside.id, 'done')
    await asleepNoMore()
  })

  test('by a shutdown gives the job back at once', async () => {
    const handler = handleInTransaction(job, async ({ tx }): Promise<string> => {
      await tx.query('select pg_sleep(60)')
      return ''
    })
    const worker = await rig.start({ handlers: [handler] })
    const { id } = await rig.rowlock.enqueue(job, '')
    await until('it sleeps', () => rig.db.value(sleeping))
    await worker.stop({ grace: 0 })
    expect(await rig.rowlock.job(id)).toMatchObject({
      state: 'queued',
      failures: 0,
      attempts: [{ outcome: 'handed_back', cause: 'shutdown' }],
    })
    await asleepNoMore()
  })
})

test.each([
  ['a completion', 'result', 'done'],
  ['a snooze', snooze('1h'), 'queued'],
] as const)(
  'the answer to the commit of %s is lost: it counts once, and nobody calls it lost',
  async (_, answer, state) => {
    let calls = 0
    const lost: unknown[] = []
    const handler = handleInTransaction(job, async (context) => {
      calls++
      await write(context)
      return answer as never
    })
    const worker = await rig.start({ handlers: [handler] }, proxy.url)
    worker.on('outcome_lost', (facts) => lost.push(facts))
    const cut = proxy.cutAnswer(/^commit$/)
    const { id } = await rig.rowlock.enqueue(job, '')
    await cut
    const row = await rig.becomes(id, state)
    await until('the worker is free again', () => worker.status.running === 0)
    await worker.stop()
    expect(row).toMatchObject({ attempt: 1, failures: 0 })
    expect(calls).toBe(1)
    expect(await written()).toBe(1)
    expect(lost).toEqual([])
  },
)

test('the answer to a commit that never comes is not waited for: the job is done', async () => {
  const lost: unknown[] = []
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    return 'result'
  })
  const worker = await rig.start({ handlers: [handler], lease: 6_000, heartbeat: 500 }, proxy.url)
  worker.on('outcome_lost', (facts) => lost.push(facts))
  const cut = proxy.cutAnswer(/^commit$/, { silently: true })
  const { id } = await rig.rowlock.enqueue(job, '')
  await cut
  await rig.becomes(id, 'done')
  await until('the worker is free again', () => worker.status.running === 0)
  await worker.stop()
  expect(lost).toEqual([])
  expect(await written()).toBe(1)
})

test('a link that dies under a statement is left at the timeout, and its handler is told', async () => {
  let thrown: unknown
  const handler = handleInTransaction(job, async ({ tx }): Promise<string> => {
    proxy.hold('rowlock handlers')
    await tx.query('select pg_sleep(60)').catch((error) => {
      thrown = error
      throw error
    })
    return ''
  })
  // The link is cut after a question to the database: on a busy machine that takes longer than a handler is waited for.
  const worker = await rig.start({ handlers: [handler], abortGrace: 60_000 }, proxy.url)
  const { id } = await rig.rowlock.enqueue(job, '', { timeout: '2s' })
  const row = await rig.becomes(id, 'retryable')
  await until('the worker is free again', () => worker.status.running === 0)
  proxy.hold(undefined)
  expect(begun(row)).toMatchObject([
    { outcome: 'timed_out', error: { message: expect.stringMatching(/terminated/i) } },
  ])
  expect(thrown).toBeInstanceOf(Error)
})

test('a commit that never reached the server has not happened: the job runs again', async () => {
  let calls = 0
  const handler = handleInTransaction(job, async (context) => {
    await write(context)
    if (++calls === 1) {
      proxy.reset()
      await abortOf(context.signal)
    }
    return 'x'
  })
  await rig.start({ handlers: [handler] }, proxy.url)
  const { id } = await rig.rowlock.enqueue(job, '', { retry: { backoff: fixed(0) } })
  // A claim whose answer was on its way is handed back.
  expect(begun(await rig.becomes(id, 'done'))).toMatchObject([{ outcome: 'lost' }])
  expect(calls).toBe(2)
  expect(await written()).toBe(1)
})

test('a database that refuses new sessions for a moment is no failure of a job that has not begun', async () => {
  const before = proxy.statements.length
  const worker = await rig.start({ handlers: [handleInTransaction(job, async () => 'x')] }, proxy.url)
  await until('it has looked', () =>
    proxy.statements.slice(before).some(({ text }) => text.includes('"claim"')),
  )
  await proxy.set('refuse')
  const { id } = await rig.rowlock.enqueue(job, '')
  await until('it was claimed', async () => (await rig.rowlock.job(id))?.state === 'running')
  await until('it has a slot', () => worker.status.running === 1)
  await proxy.set('pass')
  expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 1, failures: 0, attempts: [] })
})
