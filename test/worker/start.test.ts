// Starts that are refused at once, since no wait would mend what is wrong, and leave nothing behind.

import { createRowlock, defineJob, handle, isRowlockError } from 'rowlock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDatabase } from '../support/server.ts'
import { until } from '../support/until.ts'
import { makeRig, type Rig } from '../support/worker.ts'

let rig: Rig
beforeAll(async () => {
  rig = await makeRig('start')
})
afterEach(() => rig.rest())
afterAll(() => rig.drop())

const job = defineJob<number>('job')

test('a start on a database without Rowlock is refused, and leaves nothing behind', async () => {
  const empty = await createDatabase('empty')
  const client = createRowlock({ connectionString: empty.url })
  const worker = client.worker({ handlers: [handle(job, () => {})], signals: true, logger: rig.logger })
  const before = process.listenerCount('SIGTERM')
  await expect(worker.start()).rejects.toSatisfy((error) => isRowlockError(error, 'SCHEMA_MISSING'))
  expect(worker.status.state).toBe('stopped')
  expect(process.listenerCount('SIGTERM')).toBe(before)
  await until('its sessions are gone', async () => {
    const count = 'select count(*)::integer from pg_stat_activity where datname = $1'
    return (await rig.db.value(count, [empty.name])) === 0
  })
  await client.close()
  await empty.drop()
})

describe('a start that no wait would mend is refused', () => {
  test.each(['a wrong password', 'no such database', 'no rights'])('%s', async (what) => {
    const role = `start_${process.pid}_${new URL(rig.db.url).pathname.slice(-10)}`
    await rig.db.sql(`create role ${role} login password 'right'`)
    const url = new URL(rig.db.url)
    url.username = role
    url.password = what === 'a wrong password' ? 'wrong' : 'right'
    if (what === 'no such database') url.pathname = '/nowhere'
    const client = createRowlock({ connectionString: url.href })
    const worker = client.worker({ handlers: [handle(job, () => {})], signals: true, logger: rig.logger })
    const before = process.listenerCount('SIGTERM')
    const error = await worker.start().then(
      () => undefined,
      (thrown) => thrown,
    )
    expect(error).toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringMatching('does not let this worker in'),
      cause: expect.any(Error),
    })
    expect(worker.status.state).toBe('stopped')
    expect(process.listenerCount('SIGTERM')).toBe(before)
    await client.close()
    await rig.db.sql(`drop role ${role}`)
  })
})
