// A reference: the same claim and finish, 1,000 at a time, in a loop inside the server, with a commit after each. Nothing
// travels, nothing is decoded, no handler runs: what any client can reach at the most.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { verbs } from '../kit/rowlock.ts'
import { loopInServer } from '../ours/loop-in-server.ts'
import { handledMany, tellProgress } from './handled.ts'
import { rowlockPeer } from './rowlock-worker.ts'
import { connected } from './shape.ts'

const base = rowlockPeer({
  configuration:
    'A DO block: claim (1,000), commit, finish (1,000), commit, until nothing is left; history kept.',
})
let session: pg.Client
let url = ''
let looping: Promise<void> | undefined

export const peer = {
  ...base,
  async open(place: { url: string }) {
    await base.open(place)
    url = place.url
    session = await connected(place)
  },
  async work() {
    const database = new verbs.Database({ connectionString: url })
    const workerId = randomUUID()
    await verbs.register(database, workerId, 600_000, {}, 60_000)
    await database.close()
    tellProgress()
    looping = session
      .query(loopInServer(workerId, 1000, 'noop'))
      .then(() => handledMany(Number.POSITIVE_INFINITY))
  },
  async close() {
    await looping
    await session.end()
    await base.close()
  },
}
