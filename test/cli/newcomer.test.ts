// A newcomer with nothing but the command line finds out why a job waits: for each of these situations the text alone
// tells it from all others, and what it says to type helps.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRowlock, type Rowlock } from '../../src/index.ts'
import { endLease, enqueue, fill, held, register, verb } from '../engine/by-hand.ts'
import { call } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('newcomer')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const run = (...args: string[]) => call(args, { url: db.url, terminal: 80, env: { NO_COLOR: '1' } })
/** The reason that comes first, as one line: where a sentence is broken says nothing. */
const why = async (id: string): Promise<string> => {
  const { code, stdout, stderr } = await run('why', id)
  expect([code, stderr]).toEqual([0, ''])
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  return stdout
    .split(/\n(?=\S)/)[0]!
    .replaceAll(/\s+/g, ' ')
    .trim()
}

async function serve(queue: string, more: { kinds?: string[]; concurrency?: number } = {}) {
  const hand = await register(db)
  const { kinds = ['k'], concurrency = 2 } = more
  const name = `worker-of-${queue}`
  const values = [hand.id, { [queue]: { concurrency } }, kinds, name]
  await db.sql('update rowlock.worker set queues = $2, kinds = $3, name = $4 where id = $1', values)
  return hand
}
const running = async (queue: string, hand: Awaited<ReturnType<typeof serve>>, options: object = {}) => {
  const id = await enqueue(db, { queue, ...options })
  const { jobs } = await hand.claim({ queue, limit: 1 })
  return { id, job: held(jobs[0]!) }
}
const started = async (queue: string, options: object = {}) => {
  const { id, job } = await running(queue, await serve(queue), options)
  await verb(db, 'start', [job])
  return id
}

/** What keeps the job, how it comes about in a queue of its own, and what a person must be able to read. */
const SITUATIONS: readonly [what: string, make: (queue: string) => Promise<string>, reads: RegExp][] = [
  [
    'its time has not come',
    async (queue) => {
      await serve(queue)
      return enqueue(db, { queue, delay: '3 hours' })
    },
    /due at .*\(in 2 h 59 min\).*run-now/,
  ],
  [
    'it failed and waits for its next attempt',
    async (queue) => {
      const backoff = { type: 'fixed', delay_ms: 600_000 }
      const { id, job } = await running(queue, await serve(queue), { backoff })
      await verb(db, 'fail', [{ ...job, cause: 'ECONNREFUSED', error: { message: 'connect ECONNREFUSED' } }])
      return id
    },
    /failed \(ECONNREFUSED\).*failure 1 of 10.*\(in 9 min\)/,
  ],
  [
    'its queue is paused',
    async (queue) => {
      await serve(queue)
      await rowlock.pause(queue, { actor: 'ana', reason: 'provider down' })
      return enqueue(db, { queue })
    },
    /is paused since .* by ana: provider down.*rowlock resume/,
  ],
  [
    'no worker serves its queue',
    (queue) => enqueue(db, { queue }),
    /no living worker serves queue q\d+.*Start a worker/,
  ],
  [
    'no worker handles its kind',
    async (queue) => {
      await serve(queue, { kinds: ['resize'] })
      return enqueue(db, { queue })
    },
    /none handles kind k; they handle: resize/,
  ],
  [
    'all workers are busy',
    async (queue) => {
      await running(queue, await serve(queue, { concurrency: 1 }))
      return enqueue(db, { queue })
    },
    /all 1 worker\(s\) that handle it are busy/,
  ],
  [
    'others come first',
    async (queue) => {
      await serve(queue)
      await fill(db, 3, { queue: `'${queue}'`, available_at: `clock_timestamp() - interval '1 min'` })
      return enqueue(db, { queue })
    },
    /3 due job\(s\) of queue q\d+ come first/,
  ],
  [
    'somebody has its row locked',
    async (queue) => {
      await serve(queue)
      const id = await enqueue(db, { queue })
      const session = await db.session()
      await session.query(`set application_name = 'reports'; begin`)
      await session.query('select from rowlock.waiting where id = $1 for update', [id])
      return id
    },
    /pid \d+ \(reports, user \S+\).*idle in transaction/,
  ],
  [
    'it was lost with its workers',
    async (queue) => {
      await serve(queue)
      const id = await enqueue(db, { queue })
      await db.sql('update rowlock.waiting set losses = 2 where id = $1', [id])
      return id
    },
    /lost with its worker 2 times, so it is claimed alone/,
  ],
  [
    'all workers are draining',
    async (queue) => {
      const hand = await serve(queue)
      await db.sql(`select rowlock.heartbeat($1, '[]', '{"draining": true}')`, [hand.id])
      return enqueue(db, { queue })
    },
    /is draining.*Start another/,
  ],
  ['it runs', (queue) => started(queue), /attempt 1 runs on worker worker-of-q\d+ since/],
  [
    'it runs and is to be cancelled',
    async (queue) => {
      const id = await started(queue)
      await rowlock.cancel(id, { actor: 'ana', reason: 'wrong file' })
      return id
    },
    /is to be cancelled.*by ana: wrong file/,
  ],
  [
    'it runs beyond its timeout',
    async (queue) => {
      const id = await started(queue)
      await db.sql(`update rowlock.running set started_at = started_at - interval '1 hour' where id = $1`, [
        id,
      ])
      return id
    },
    /has run for 1 h.*15 min/,
  ],
  [
    'its worker is gone',
    async (queue) => {
      const hand = await serve(queue)
      const { id } = await running(queue, hand)
      await endLease(db, hand)
      return id
    },
    /the lease of worker worker-of-q\d+ is over/,
  ],
  [
    'it is a dead letter',
    async (queue) => {
      const { id, job } = await running(queue, await serve(queue), { max_attempts: 1 })
      await verb(db, 'fail', [{ ...job, cause: 'TypeError', error: { message: 'no such customer' } }])
      return id
    },
    /it is a dead letter.*no such customer.*rowlock redrive/,
  ],
  [
    'it is done',
    async (queue) => {
      const { id, job } = await running(queue, await serve(queue))
      await verb(db, 'start', [job])
      await verb(db, 'complete', [job])
      return id
    },
    /it is done since/,
  ],
]

test('each reason why a job is where it is can be told from all others by its text alone', async () => {
  const told: { what: string; text: string }[] = []
  for (const [n, [what, make, reads]] of SITUATIONS.entries()) {
    const text = await why(await make(`q${n}`))
    expect(text, what).toMatch(reads)
    told.push({ what, text })
  }
  for (const [what, , reads] of SITUATIONS) {
    expect(told.filter(({ text }) => reads.test(text)).map((each) => each.what)).toEqual([what])
  }
  const words = told.map(({ text }) => text.split(':')[0])
  expect(new Set(words).size).toBe(SITUATIONS.length)
  expect(words.length).toBeGreaterThanOrEqual(10)
})

test('what it says to type is typed as it stands, and helps', async () => {
  await serve('mail')
  const id = await enqueue(db, { queue: 'mail', delay: '1 hour' })
  await rowlock.pause('mail')
  for (const reason of ['scheduled', 'paused']) {
    const text = await why(id)
    expect(text).toMatch(new RegExp(`^${reason}: `))
    const [, command] = /rowlock ((?:run-now|resume) \S+?)[. ]/.exec(text)!
    expect(await run(...command!.split(' '))).toMatchObject({ code: 0 })
  }
  expect(await why(id)).toMatch(/^due: nothing holds it/)
})

test('the lists say the same at a glance', async () => {
  await rowlock.pause('calm')
  await enqueue(db, { queue: 'calm' })
  const id = await enqueue(db, { queue: 'calm', delay: '1 hour' })
  expect((await run('queues')).stdout).toMatch(/^calm +paused +1 /m)
  expect((await run('jobs', '--queue', 'calm')).stdout).toMatch(
    new RegExp(`^ *${id} +queued +k +calm +in 59m`, 'm'),
  )
  expect((await run('job', id)).stdout).toMatch(/^due +\S+ \S+ \(in 59m/m)
  expect((await run('workers')).stdout).toMatch(/worker-of-q\S* +alive/)
})
