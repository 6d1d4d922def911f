// A job that ends the session of its own transaction, or the server with it, counts a failure each time: also where its
// worker notices before any reaper does.

import { defineJob, fixed, handleInTransaction } from 'rowlock'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('session_lost')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const poison = defineJob('poison', { retry: { maxAttempts: 2, backoff: fixed(0) } })

test('it becomes a dead letter without a reaper, and its worker goes on', async () => {
  await rig.holdOffReapers()
  const handler = handleInTransaction(poison, async ({ tx }) => {
    await tx.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {})
  })
  await rig.start({
    handlers: [handler],
    lease: 10_000,
    queues: { default: { concurrency: 1 } },
  })
  const { id } = await rig.rowlock.enqueue(poison, null)
  const row = await rig.becomes(id, 'dead_letter')
  expect(row).toMatchObject({ attempt: 2, failures: 2, cause: 'lease_lost' })
})
