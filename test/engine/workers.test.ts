// The worker processes as the database knows them; and what a role needs to look at all this.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { quoteIdentifier } from '../../src/engine/schema.ts'
import { grants } from '../../src/ground/rights.ts'
import { defineJob, handle } from '../../src/index.ts'
import { type Ground, ground, note } from '../support/ground.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

describe('the workers', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await makeRig('workers')
  })
  afterEach(() => rig.rest())
  afterAll(() => rig.drop())
  const job = defineJob<string>('job')

  test('are none where none was started', async () => {
    expect(await rig.rowlock.workers()).toEqual([])
  })

  test('tell who they are, what they serve and how they fare', async () => {
    const ends: (() => void)[] = []
    const handler = handle(job, () => new Promise<void>((resolve) => ends.push(resolve)))
    const queues = { default: { concurrency: 1, prefetch: 1 }, email: { concurrency: 4, prefetch: 0 } }
    const worker = await rig.start({ handlers: [handler], queues, name: 'one', heartbeat: 100, lease: '20s' })
    const { workerId } = worker.status
    await rig.rowlock.enqueueMany([job.with(''), job.with(''), job.with('', { queue: 'email' })])
    await rig.rowlock.setQueue('email', { concurrency: 6 })
    const row = await until('all of it is told', async () => {
      const [one] = await rig.rowlock.workers()
      return one!.running === 2 && one!.prefetched === 1 && one!.slots === 7 && one
    })
    const rates = { done: 0, failed: 0, retried: 0, stuck: 0 }
    expect(row).toEqual({
      id: workerId,
      name: 'one',
      release: expect.stringMatching(/^\d/),
      pid: process.pid,
      startedAt: expect.any(Date),
      beatAt: expect.any(Date),
      expiresAt: expect.any(Date),
      isAlive: true,
      leaseMs: 20_000,
      queues: {
        default: { concurrency: 1, prefetch: 1, running: 1, prefetched: 1, ...rates },
        email: { concurrency: 6, prefetch: 0, running: 1, prefetched: 0, ...rates },
      },
      kinds: ['job'],
      jobs: 3,
      running: 2,
      prefetched: 1,
      slots: 7,
      stuck: 0,
      draining: false,
      listening: false,
      lagMs: expect.any(Number),
    })
    const stopped = worker.stop()
    await until('it is seen to drain', async () => (await rig.rowlock.workers())[0]?.draining)
    for (const end of ends) end()
    await stopped
    await until('its row is gone', async () => (await rig.rowlock.workers()).length === 0)
  })

  test('come the eldest first, and are seen after their lease until they are buried', async () => {
    for (const name of ['elder', 'younger', 'gone']) {
      await rig.db.sql(`select rowlock.register(gen_random_uuid(), '1 hour', $1)`, [{ name }])
    }
    await rig.db.sql(`update rowlock.worker set expires_at = now() where name = 'gone'`)
    const seen = await rig.rowlock.workers()
    expect(seen.map(({ name, isAlive }) => [name, isAlive])).toEqual([
      ['elder', true],
      ['younger', true],
      ['gone', false],
    ])
    await rig.db.sql('select rowlock.reap()')
    expect(await rig.rowlock.workers()).toHaveLength(2)
  })
})

describe('whoever looks', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('looks')
  })
  afterAll(() => at.drop())

  test('needs no right on any table, only on the functions; and sees no statement that is not his to see', async () => {
    const schema = `It's "odd" %`
    const owner = at.client({ schema })
    await owner.migrate()
    const url = await at.role('looker', [
      `set default_transaction_isolation = 'serializable'`,
      'set default_transaction_read_only = on',
      `set timezone = 'Asia/Kathmandu'`,
      `set datestyle = 'German, DMY'`,
      `set intervalstyle = 'sql_standard'`,
      'set standard_conforming_strings = off',
      `set search_path = ''`,
    ])
    const name = new URL(url).username
    const quoted = quoteIdentifier(schema)
    await at.sql(`grant usage on schema ${quoted} to ${name}`)
    for (const one of ['why', 'story', 'queues', 'workers', 'length_ms']) {
      await at.sql(`grant execute on function ${quoted}.${one} to ${name}`)
    }
    const { id } = await owner.enqueue(note, 1, { queue: `q'\\` })
    await owner.pause(`q'\\`, { actor: 'ana', reason: 'provider down' })
    const looker = at.client({ url, schema })
    const [paused, noWorker] = await looker.why(id)
    expect(paused!.says).toMatch(/is paused since \d\d:\d\d:\d\d \+0545 \(.* ago\) by ana: provider down/)
    expect(noWorker).toMatchObject({ reason: 'no_worker' })
    expect(Date.now() - paused!.since!.getTime()).toBeLessThan(3_600_000)
    expect((await looker.story(id)).map(({ event }) => event)).toEqual(['enqueued', 'queued'])
    expect(await looker.queue(`q'\\`)).toMatchObject({ due: 1, targetWaitMs: 60_000, pausedBy: 'ana' })
    await expect(looker.queue(`q'\\\\`)).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    expect(await looker.workers()).toEqual([])
  })

  test('sees who locks a row, and what that session says only as far as both he and the owner may', async () => {
    const owner = at.client()
    await owner.migrate()
    const url = await at.role('viewer')
    await at.sql(grants('viewer', new URL(url).username))
    const { id } = await owner.enqueue(note, 1)
    const [{ role }] = await at.sql('select current_user as role')
    const look = async (asks: string) => (await at.client({ url: asks }).why(id))[0]!

    const holder = new pg.Client({ connectionString: await at.role('holder') })
    await holder.connect()
    const holderRole = (await holder.query('select current_user as role')).rows[0].role
    await at.sql(
      `grant usage on schema rowlock to ${holderRole}; grant select, update on rowlock.waiting to ${holderRole}`,
    )
    await holder.query('begin')
    await holder.query('select from rowlock.waiting for update')
    const hidden = await look(url)
    expect(hidden).toMatchObject({
      reason: 'row_locked',
      detail: { usename: holderRole, pid: expect.any(Number) },
    })
    expect(hidden.detail).not.toHaveProperty('query')
    expect(hidden.detail).not.toHaveProperty('state')
    expect(hidden.says).toMatch(/^pid \d+ \(user holder_\S+\) has its row locked\. End that transaction/)

    await at.admin(`grant pg_read_all_stats to ${role}`)
    const half = await look(url)
    expect(half.detail).toMatchObject({ state: 'idle in transaction' })
    expect(half.detail).not.toHaveProperty('query')
    expect((await look(at.url)).detail).toMatchObject({ query: 'select from rowlock.waiting for update' })
    await holder.end()
  })
})
