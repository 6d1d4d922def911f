// Whom PgBouncer does not let in: it says so with the code of a broken protocol, and a worker that starts is told.

import { createRowlock, defineJob, handle } from 'rowlock'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silent } from '../support/ground.ts'
import { adminUrl, createDatabase, type TestDatabase } from '../support/server.ts'
import { TEMPLATE } from '../support/template.ts'
import { type Bouncer, findBouncer, startBouncer } from './pgbouncer.ts'

const program = findBouncer()
if (program === undefined) console.info('not run: PgBouncer is not installed')

describe.skipIf(program === undefined)('a start through PgBouncer', () => {
  let bouncer: Bouncer
  let db: TestDatabase
  beforeAll(async () => {
    bouncer = await startBouncer(program!, adminUrl(), 2, { asThemselves: true })
    db = await createDatabase('let in', { template: TEMPLATE })
  })
  afterAll(async () => {
    await bouncer?.stop()
    await db?.drop()
  })

  test.each([
    ['a wrong password', { password: 'wrong' }],
    ['a user that is not there', { username: 'nobody_here' }],
    ['a database that is not there', { pathname: '/nowhere' }],
  ])('with %s is refused, for no wait would mend it', async (_, wrong) => {
    const url = Object.assign(new URL(bouncer.url), { pathname: new URL(db.direct).pathname, ...wrong })
    const rowlock = createRowlock({ connectionString: url.href })
    const worker = rowlock.worker({ handlers: [handle(defineJob('note'), () => {})], logger: silent })
    await expect(worker.start()).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringMatching('does not let this worker in'),
    })
    expect(worker.status.state).toBe('stopped')
    await rowlock.close()
  })
})
