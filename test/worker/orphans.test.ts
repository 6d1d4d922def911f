// Jobs that the database gave to a worker which knows nothing of them.

import { expect, test } from 'vitest'
import type { Database } from '../../src/engine/database.ts'
import { type HeldJob, Orphans } from '../../src/worker/orphans.ts'

test('a job that the process knows is no orphan', async () => {
  const held = [1, 2, 3].map((n) => ({ id: String(n), claimId: `claim ${n}`, attempt: 1 }))
  const found: (readonly HeldJob[])[] = []
  const orphans = new Orphans({
    database: { query: async () => held } as unknown as Database,
    timeoutMs: 1_000,
    doubtMs: 1_000,
    isKnown: ({ id }) => id !== '2',
    onFound: (jobs) => void found.push(jobs),
  })
  await orphans.runOnce('worker')
  expect(found).toEqual([[held[1]]])
})
