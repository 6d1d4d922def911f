// Waking: an idle worker sleeps long and is woken by whatever gives it work; no wake-up is lost.

import { defineJob, fixed, handle } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { Database } from '../../src/engine/database.ts'
import { Listener } from '../../src/worker/listener.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
let proxy: PostgresProxy
beforeAll(async () => {
  rig = await makeRig('wake')
  proxy = await startProxy(rig.db.url)
})
afterEach(async () => {
  await proxy.set('pass')
  await rig.rest()
})
afterAll(async () => {
  await proxy.close()
  await rig.drop()
})

const job = defineJob<number>('job')
const handler = handle(job, () => {})
/** Only a notice can wake this one in the time of a test. */
const sleepy = { handlers: [handler], listen: true, poll: '5m', pollListening: '5m', lease: '1h' } as const
const flags = () => rig.db.value<number>('select count(*)::integer from rowlock.sleeper')
const claims = () => proxy.statements.filter(({ text }) => text.includes('"claim"')).length

/** A worker that has nothing to do and has stopped looking. */
async function asleep(more: object = {}) {
  const worker = await rig.start({ ...sleepy, ...more }, proxy.url)
  await until('it listens', () => worker.status.listening)
  await until('its flag is up', async () => (await flags()) > 0)
  await untilQuiet()
  return worker
}

/** No claim for a while: the flags have settled. */
async function untilQuiet() {
  let last = -1
  let still = 0
  await until('it has stopped looking', () => {
    still = claims() === last ? still + 1 : 0
    last = claims()
    return still >= 25
  })
}

describe('a sleeping worker is woken', () => {
  test('by an enqueue', async () => {
    await asleep()
    const { id } = await rig.rowlock.enqueue(job, 1)
    await rig.becomes(id, 'done')
  })

  test('by an enqueue under a stricter isolation', async () => {
    await asleep()
    const session = await rig.db.session()
    await session.query('begin isolation level serializable')
    const { id } = await rig.rowlock.in(session).enqueue(job, 1)
    await session.query('commit')
    await rig.becomes(id, 'done')
  })

  test('by a scheduled job that becomes due, without any notice', async () => {
    await asleep()
    const { id } = await rig.rowlock.enqueue(job, 1, { delay: 400 })
    await rig.becomes(id, 'done')
  })

  test('by a scheduled job that was there before it slept', async () => {
    const { id } = await rig.rowlock.enqueue(job, 1, { delay: 1_500 })
    await asleep()
    await rig.becomes(id, 'done')
  })

  test('by run now, and by a change of the queue from paused to open', async () => {
    const { id } = await rig.rowlock.enqueue(job, 1, { delay: '1h' })
    await asleep()
    await rig.rowlock.runNow(id)
    await rig.becomes(id, 'done')
    await rig.rowlock.pause('default')
    const next = await rig.rowlock.enqueue(job, 1)
    await untilQuiet()
    expect((await rig.rowlock.job(next.id))?.state).toBe('queued')
    await rig.rowlock.resume('default')
    await rig.becomes(next.id, 'done')
  })

  test('by a redrive', async () => {
    let fails = true
    const once = handle(job, () => {
      if (fails) throw new Error('no')
    })
    await asleep({ handlers: [once] })
    const { id } = await rig.rowlock.enqueue(job, 1, { retry: { maxAttempts: 1 } })
    await rig.becomes(id, 'dead_letter')
    fails = false
    await untilQuiet()
    await rig.rowlock.redrive(id)
    await rig.becomes(id, 'done')
  })

  test('by a job that the reaper gives back', async () => {
    await asleep()
    const dead = '00000000-0000-4000-8000-000000000002'
    await rig.db.sql(`select rowlock.register($1, '1 hour', '{}')`, [dead])
    const { id } = await rig.rowlock.enqueue(job, 1, { delay: '1h', retry: { backoff: fixed(0) } })
    await rig.db.sql('update rowlock.waiting set available_at = now() where id = $1', [id])
    await rig.db.sql('select rowlock.claim($1, $2)', [
      dead,
      JSON.stringify([{ queue: 'default', limit: 9, kinds: ['job'] }]),
    ])
    await rig.db.sql('update rowlock.worker set expires_at = now() where id = $1', [dead])
    expect(await rig.becomes(id, 'done')).toMatchObject({ attempt: 2 })
  })

  test('by a job of any of its queues', async () => {
    const names = ['a', 'b', 'c', 'd']
    await asleep({ queues: Object.fromEntries(names.map((name) => [name, {}])) })
    for (const queue of names) {
      const { id } = await rig.rowlock.enqueue(job, 1, { queue })
      await rig.becomes(id, 'done')
    }
  })
})

test('an enqueue whose transaction began before the flag went up, and commits after, is found', async () => {
  const session = await rig.db.session()
  await session.query('begin')
  const { id } = await rig.rowlock.in(session).enqueue(job, 1)
  const worker = await rig.start({ ...sleepy }, proxy.url)
  await until('it listens', () => worker.status.listening)
  await until('its flag is up', async () => (await flags()) > 0)
  // It goes on looking while that transaction is open.
  const before = claims()
  await until('it has looked again and again', () => claims() > before + 5)
  await session.query('commit')
  await rig.becomes(id, 'done')
  await untilQuiet()
})

test('fifty transactions that race with a worker that falls asleep lose no wake-up', async () => {
  await asleep()
  const session = await rig.db.session()
  for (let round = 0; round < 50; round++) {
    await session.query('begin')
    const { id } = await rig.rowlock.in(session).enqueue(job, round)
    // From none to a few looks later.
    for (let n = 0; n < round % 10; n++) await session.query('select pg_sleep(0.002)')
    await session.query('commit')
    await rig.becomes(id, 'done')
  }
})

describe('a listener that is lost', () => {
  const backend = `select pid from pg_stat_activity where datname = current_database()
    and application_name = 'rowlock listen'`

  test('makes the worker poll, and comes back', async () => {
    const worker = await rig.start({ ...sleepy, poll: 50, pollListening: '5m' }, proxy.url)
    await until('it listens', () => worker.status.listening)
    const changes: boolean[] = []
    worker.on('listening', ({ proven }) => changes.push(proven))
    for (let round = 0; round < 3; round++) {
      await rig.db.sql(`select pg_terminate_backend(pid) from (${backend}) as listening`)
      const { id } = await rig.rowlock.enqueue(job, 1)
      await rig.becomes(id, 'done')
      await until('it listens again', () => changes.length === 2 * (round + 1))
    }
    expect(changes).toEqual([false, true, false, true, false, true])
    // A session that was ended is listed for a moment more.
    await until('one session listens', async () => (await rig.db.sql(backend)).length === 1)
  })

  test('because its link is dead is noticed by the next proof', async () => {
    const database = new Database({ connectionString: proxy.url }).lane(2, 'listening')
    const heard: string[] = []
    const changes: boolean[] = []
    const listener = new Listener({
      database,
      notifier: rig.db.database,
      onQueue: (queue) => void heard.push(queue),
      onCancel: () => {},
      onSettings: () => {},
      onChange: (proven) => void changes.push(proven),
      onError: () => {},
    })
    const proven = () =>
      until('it is proven', async () => {
        await listener.runOnce()
        return listener.isProven
      })
    await proven()
    proxy.hold('listening')
    await listener.runOnce()
    expect(listener.isProven).toBe(false)
    proxy.hold(undefined)
    await proven()
    await rig.db.sql(`select pg_notify(rowlock.channel(), 'queue späte ☃')`)
    await until('it hears', () => heard.length > 0)
    expect(heard).toEqual(['späte ☃'])
    // A proof that takes too long on a busy machine comes before the first.
    expect(changes.slice(changes.indexOf(true))).toEqual([true, false, true])
    await listener.stop()
    await database.closeLane()
  })
})

test('a listener whose proof is not heard tries again soon, and ever more rarely', async () => {
  const database = new Database({ connectionString: rig.db.url }).lane(2, 'listening')
  let isSilent = true
  const query = async (...asked: [string, unknown[]]) => (isSilent ? [] : rig.db.database.query(...asked))
  const notifier = { query } as unknown as Database
  const nothing = () => {}
  const listener = new Listener({
    database,
    notifier,
    onQueue: nothing,
    onCancel: nothing,
    onSettings: nothing,
    onChange: nothing,
    onError: nothing,
  })
  expect(await listener.runOnce()).toBe(1_000)
  expect(await listener.runOnce()).toBe(4_000)
  isSilent = false
  await until('it is proven', async () => {
    await listener.runOnce()
    return listener.isProven
  })
  isSilent = true
  expect(await listener.runOnce()).toBe(1_000)
  await listener.stop()
  await database.closeLane()
})

test('notices that mean nothing to it are left alone', async () => {
  const worker = await asleep()
  for (const payload of [
    '',
    'queue',
    'queue ',
    'nonsense',
    'cancel',
    'cancel x',
    'probe x',
    'queue \u2028',
  ]) {
    await rig.db.sql('select pg_notify(rowlock.channel(), $1)', [payload])
  }
  const { id } = await rig.rowlock.enqueue(job, 1)
  await rig.becomes(id, 'done')
  expect(worker.status.listening).toBe(true)
})

test('an idle worker asks for one claim a poll, however many queues it serves', async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`q${n}`, {}]))
  const worker = await rig.start(
    { handlers: [handler], listen: false, poll: 50, queues: many, lease: '1h' },
    proxy.url,
  )
  const before = proxy.statements.length
  const polls = claims()
  await until('it has polled ten times', () => claims() >= polls + 10)
  await worker.stop()
  const idle = proxy.statements.slice(before).filter(({ session }) => session === 'rowlock worker')
  const others = idle.filter(({ text }) => !text.includes('"claim"'))
  // The rest is maintenance, once.
  expect(others.filter(({ text }) => /"(sleep|finish|start)"/.test(text))).toEqual([])
})
