// Every background loop starts and stops in the same way.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Database } from '../../src/engine/database.ts'
import { Fetcher } from '../../src/worker/fetcher.ts'
import { Frontier } from '../../src/worker/frontier.ts'
import { Heartbeat } from '../../src/worker/heartbeat.ts'
import { Lease } from '../../src/worker/lease.ts'
import { Listener } from '../../src/worker/listener.ts'
import { Loop } from '../../src/worker/loop.ts'
import { Maintenance } from '../../src/worker/maintenance.ts'
import { Orphans } from '../../src/worker/orphans.ts'
import { Slots } from '../../src/worker/slots.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { until } from '../support/until.ts'

let db: TestRowlock
let database: Database
const errors: unknown[] = []
const onError = (error: unknown) => void errors.push(error)
const nothing = () => {}
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

beforeAll(async () => {
  db = await rowlockDatabase('loops')
  database = new Database({ connectionString: db.url }).lane(4, 'loops')
})
afterAll(async () => {
  await database.closeLane()
  await db.drop()
})

interface AnyLoop {
  start(): void
  stop(): Promise<void>
  runOnce(): Promise<unknown>
}

/** Each with a figure that rises with every round. */
const made: Record<string, () => Promise<{ loop: AnyLoop; rounds: () => Promise<number> | number }>> = {
  async loop() {
    let rounds = 0
    const run = async () => {
      rounds++
      return 20
    }
    return { loop: new Loop({ run, everyMs: 20, errorMaxMs: 100, onError }), rounds: () => rounds }
  },
  async heartbeat() {
    let beats = 0
    const loop = new Heartbeat({
      database,
      lease: new Lease(30_000, nothing),
      leaseMs: 30_000,
      heartbeatMs: 100,
      beforeRegister: async () => {},
      identity: () => ({ name: 'loops' }),
      facts: () => ({}),
      started: () => [],
      onGranted: () => void beats++,
      onBeat: () => void beats++,
      onError,
    })
    return { loop, rounds: () => beats }
  },
  async fetcher() {
    const lease = new Lease(30_000, nothing)
    const id = Lease.newId()
    await db.sql(`select rowlock.register($1, '30 s', '{}')`, [id])
    lease.granted(id, performance.now())
    let looks = 0
    const slots = new Slots([{ queue: 'default', concurrency: 1, prefetch: 0, hasOwnPrefetch: true }], ['k'])
    const wants = slots.wants.bind(slots)
    slots.wants = () => {
      looks++
      return wants()
    }
    const orphans = new Orphans({
      database,
      timeoutMs: 30_000,
      doubtMs: 0,
      everyMs: 30_000,
      isKnown: () => true,
      onFound: nothing,
    })
    const loop = new Fetcher({
      database,
      lease,
      slots,
      frontier: new Frontier(),
      orphans,
      pollMs: 50,
      pollListeningMs: 50,
      timeoutMs: 30_000,
      isListening: () => false,
      isHeld: () => false,
      onClaim: nothing,
      onError,
    })
    return { loop, rounds: () => looks }
  },
  async listener() {
    let changes = 0
    const loop = new Listener({
      database,
      notifier: database,
      onQueue: nothing,
      onCancel: nothing,
      onSettings: nothing,
      onChange: (proven) => {
        if (proven) changes++
      },
      onError,
    })
    return { loop, rounds: () => changes }
  },
  async maintenance() {
    let rounds = 0
    const loop = new Maintenance({
      database,
      everyMs: 100,
      timeoutMs: 30_000,
      logger,
      isPooled: () => {
        rounds++
        return false
      },
      onReaped: nothing,
      onError,
    })
    loop.setDuty(0)
    return { loop, rounds: () => rounds }
  },
}

describe.each(Object.keys(made))('the %s', (name) => {
  test('starts and stops', async () => {
    const { loop, rounds } = await made[name]!()
    loop.start()
    loop.start()
    await until('it has gone round', async () => (await rounds()) > 0)
    await loop.stop()
    const then = await rounds()
    await loop.runOnce().catch(() => {})
    expect(await rounds()).toBeLessThanOrEqual(then + 2)
    await loop.stop()
  })

  test('stops twice', async () => {
    const { loop } = await made[name]!()
    loop.start()
    await Promise.all([loop.stop(), loop.stop()])
    await loop.stop()
  })

  test('stops before it started', async () => {
    const { loop, rounds } = await made[name]!()
    await loop.stop()
    expect(await rounds()).toBe(0)
    loop.start()
    await until('it has gone round', async () => (await rounds()) > 0)
    await loop.stop()
  })

  test('runs once, twice, at once, and does no harm', async () => {
    errors.length = 0
    const { loop } = await made[name]!()
    await Promise.all([loop.runOnce(), loop.runOnce()])
    await loop.runOnce()
    await loop.stop()
    expect(errors).toEqual([])
  })
})

describe('a loop', () => {
  test('that fails comes back, with pauses that grow to their cap', async () => {
    const at: number[] = []
    const loop = new Loop({
      run: async () => {
        at.push(performance.now())
        throw new Error('no')
      },
      everyMs: 1,
      errorMaxMs: 200,
      onError: () => {
        throw new Error('the listener fails too')
      },
    })
    loop.start()
    await until('it has failed five times', () => at.length >= 5)
    await loop.stop()
    const pauses = at.slice(1).map((time, n) => time - at[n]!)
    expect(Math.min(...pauses)).toBeGreaterThan(95)
  })

  test('goes round again at once when it is nudged during a round', async () => {
    let rounds = 0
    let release: () => void = nothing
    const loop = new Loop({
      run: () => {
        rounds++
        return new Promise<undefined>((resolve) => {
          release = () => resolve(undefined)
        })
      },
      everyMs: 1_000_000,
      errorMaxMs: 100,
      onError,
    })
    loop.start()
    await until('the first round has begun', () => rounds === 1)
    loop.nudge()
    loop.nudge()
    release()
    await until('a second round has begun', () => rounds === 2)
    release()
    loop.nudge()
    release()
    await until('a third round has begun', () => rounds === 3)
    release()
    await loop.stop()
    loop.nudge()
    expect(rounds).toBe(3)
  })

  test('waits for no timer when it is due: a timer would put a job off by a millisecond', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let rounds = 0
    const run = async () => {
      rounds++
      return 60_000
    }
    const loop = new Loop({ run, everyMs: 60_000, errorMaxMs: 100, onError })
    const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    try {
      loop.start()
      await turn()
      loop.nudge()
      loop.nudge()
      await turn()
      // Nudged twice in one turn, it goes round once.
      expect(rounds).toBe(2)
    } finally {
      vi.useRealTimers()
      await loop.stop()
    }
  })

  test('keeps its pause after a failure, however often it is nudged, but for what is eager', async () => {
    let rounds = 0
    const loop = new Loop({
      run: async () => {
        rounds++
        throw new Error('no')
      },
      everyMs: 1,
      errorMaxMs: 1_000_000,
      onError: nothing,
    })
    loop.start()
    // By now its pause is minutes long.
    await until('it has failed twelve times', () => {
      if (rounds < 12) loop.nudge(true)
      return rounds >= 12
    })
    for (let n = 0; n < 10; n++) {
      loop.nudge()
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
    expect(rounds).toBe(12)
    loop.nudge(true)
    await until('it has gone round', () => rounds === 13)
    await loop.stop()
  })

  test('says nothing of a round that fails after the stop', async () => {
    let fail: () => void = nothing
    const said: unknown[] = []
    const run = () =>
      new Promise<undefined>((_, reject) => {
        fail = () => reject(new Error('cut off'))
      })
    const loop = new Loop({ run, everyMs: 1, errorMaxMs: 1, onError: (error) => void said.push(error) })
    loop.start()
    await until('it is in a round', () => fail !== nothing)
    const stopped = loop.stop()
    fail()
    await stopped
    expect(said).toEqual([])
  })
})
