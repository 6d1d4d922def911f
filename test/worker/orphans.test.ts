// Jobs that the database gave to a worker which knows nothing of them.

import { expect, test } from 'vitest'
import type { Database } from '../../src/engine/database.ts'
import { RowlockError } from '../../src/ground/errors.ts'
import { Fetcher } from '../../src/worker/fetcher.ts'
import { Frontier } from '../../src/worker/frontier.ts'
import { Lease } from '../../src/worker/lease.ts'
import { type HeldJob, Orphans } from '../../src/worker/orphans.ts'
import { Slots } from '../../src/worker/slots.ts'

const held = [1, 2, 3].map((n) => ({ id: String(n), claimId: `claim ${n}`, attempt: 1 }))

function orphansOf(answers: (typeof held)[], options: { readonly everyMs?: number } = {}) {
  const found: (readonly HeldJob[])[] = []
  const looks: string[] = []
  const query = async () => {
    looks.push('look')
    return answers.length > 1 ? answers.shift() : answers[0]
  }
  const orphans = new Orphans({
    database: { query } as unknown as Database,
    timeoutMs: 1_000,
    doubtMs: 3_600_000,
    everyMs: 3_600_000,
    isKnown: ({ id }) => id !== '2',
    onFound: (jobs) => void found.push(jobs),
    ...options,
  })
  return { orphans, found, looks }
}

function fetcherOf(orphans: Orphans, database: Database, lease: Lease): Fetcher {
  const nothing = () => {}
  return new Fetcher({
    database,
    lease,
    slots: new Slots([{ queue: 'default', concurrency: 1, prefetch: 0, hasOwnPrefetch: true }], ['kind']),
    frontier: new Frontier(),
    orphans,
    pollMs: 1_000,
    pollListeningMs: 1_000,
    timeoutMs: 1_000,
    isListening: () => false,
    isHeld: () => false,
    onClaim: nothing,
    onError: nothing,
  })
}

test('a job that the process knows is no orphan', async () => {
  const { orphans, found } = orphansOf([held])
  await orphans.runOnce('worker')
  expect(found).toEqual([[held[1]]])
})

test('a job that ended while the answer was on its way is no orphan', async () => {
  const { orphans, found } = orphansOf([held, held.slice(2)])
  await orphans.runOnce('worker')
  expect(found).toEqual([])
})

test('another claim of the same job is no orphan before it was seen twice', async () => {
  const { orphans, found } = orphansOf([
    held,
    held.map((job) => ({ ...job, claimId: `a later ${job.claimId}` })),
  ])
  await orphans.runOnce('worker')
  expect(found).toEqual([])
  await orphans.runOnce('worker')
  expect(found).toHaveLength(1)
})

test('it is looked as often as the net is cast, and when there is a doubt', async () => {
  const { orphans, looks } = orphansOf([[]])
  expect(orphans.dueInMs).toBeGreaterThan(3_000_000)
  expect(orphans.dueInMs).toBeLessThanOrEqual(3_600_000)
  await orphans.lookIfDue('worker')
  expect(looks).toHaveLength(0)
  orphans.doubt()
  expect(orphans.dueInMs).toBe(1)
  await orphans.lookIfDue('worker')
  expect(looks).toHaveLength(1)
  expect(orphans.dueInMs).toBeLessThanOrEqual(1_000)
  const often = orphansOf([[]], { everyMs: 0 })
  await often.orphans.lookIfDue('worker')
  expect(often.looks).toHaveLength(1)
})

test('who has no lease looks for none, however long ago the last look was', async () => {
  const { orphans, looks } = orphansOf([[]], { everyMs: 0 })
  const fetcher = fetcherOf(orphans, {} as Database, new Lease(30_000, () => {}))
  // It comes back at its own pace, and does not spin.
  expect(await fetcher.runOnce()).toBeGreaterThanOrEqual(800)
  expect(looks).toHaveLength(0)
})

test('a server that is away is a doubt too: it may be another when it is back', async () => {
  const { orphans } = orphansOf([[]])
  const away = async () => {
    throw new RowlockError('DATABASE_UNAVAILABLE', 'it is away')
  }
  const lease = new Lease(30_000, () => {})
  lease.granted(Lease.newId(), performance.now())
  await fetcherOf(orphans, { call: away } as unknown as Database, lease)
    .runOnce()
    .catch(() => {})
  lease.lose()
  expect(orphans.dueInMs).toBe(1)
})
