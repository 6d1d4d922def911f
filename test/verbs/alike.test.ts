// Every verb of an operator works alike from TypeScript, from the command line and from SQL: for one job, for several,
// and by filter; in each state a job can be in. The same effect on what is stored, the same answer, the same refusal,
// the same line in the audit.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BULK_VERBS, type BulkVerb, STATES, type State, statesOf } from '../../src/ground/states.ts'
import { createRowlock, type Rowlock } from '../../src/index.ts'
import { enqueue, type Hand, held, register, verb as settle } from '../engine/by-hand.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { BY, commandLine, type Door, plainSql, type Said, type Settings, typescript } from './doors.ts'

let db: TestRowlock
let rowlock: Rowlock
let hand: Hand
let doors: Readonly<Record<string, Door>>
beforeAll(async () => {
  db = await rowlockDatabase('alike')
  hand = await register(db)
  rowlock = createRowlock({ connectionString: db.url })
  doors = { TypeScript: typescript(rowlock), 'the command line': commandLine(db.url), SQL: plainSql(db) }
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

let queues = 0

/** A job in a state, scheduled where it waits, with a dedupe key, alone in its queue. */
async function into(state: State, queue = `q${++queues}`): Promise<{ id: string; queue: string }> {
  const options = { queue, dedupe_key: 'k', max_attempts: state === 'dead_letter' ? 1 : 10 }
  const id = await enqueue(db, state === 'queued' ? { ...options, delay: '1 hour' } : options)
  if (state === 'queued') return { id, queue }
  const { jobs } = await hand.claim({ queue })
  const job = held(jobs[0]!)
  const error = { error: { message: 'no' }, cause: 'Error' }
  if (state === 'done') await settle(db, 'complete', [job])
  if (state === 'failed') await settle(db, 'fail', [{ ...job, ...error, permanent: true }])
  if (state === 'cancelled') await settle(db, 'abandon', [job])
  if (state === 'retryable' || state === 'dead_letter') await settle(db, 'fail', [{ ...job, ...error }])
  return { id, queue }
}

/** What can be met: each state, a key that a live job has by now, and nothing at all. */
const SITUATIONS: Readonly<Record<string, () => Promise<{ id: string; queue: string }>>> = {
  ...Object.fromEntries(STATES.map((state) => [state, () => into(state)])),
  'dead_letter, its key taken': () => keyTaken('dead_letter'),
  'done, its key taken': () => keyTaken('done'),
  'no such job': async () => ({ id: String(999_999_999 + queues), queue: `q${++queues}` }),
}

async function keyTaken(state: State): Promise<{ id: string; queue: string }> {
  const job = await into(state)
  await enqueue(db, { queue: job.queue, dedupe_key: 'k', delay: '1 hour' })
  return job
}

const COLUMNS = `
  j.state, j.kind, j.priority, j.attempt, j.failures, j.cause, j.actor, j.reason, j.dedupe_key,
  case when j.available_at <= rowlock.now() then 'due' else 'scheduled' end as due, j.finished_at is not null as ended,
  (select count(*)::integer from rowlock.attempt a where a.job_id = j.id) as attempts`

/** All that is stored of the jobs of a queue, with their ids as places in their order. */
async function stored(queue: string, id: string) {
  const jobs = await db.sql(
    `select j.id, j.retried_from, ${COLUMNS} from rowlock.job j where j.queue = $1 order by j.id`,
    [queue],
  )
  const ids = [...new Set([id, ...jobs.map((job) => job.id)])]
  const place = (each: unknown) =>
    each === null || each === undefined ? undefined : 1 + ids.indexOf(String(each))
  const audit = await db.sql(
    `select a.verb, a.job_id, a.actor, a.reason, a.detail from rowlock.audit a where a.job_id = any ($1) order by a.id`,
    [ids],
  )
  const keys = await db.sql('select d.job_id from rowlock.dedupe d where d.queue = $1', [queue])
  const asked = await db.sql(
    'select c.job_id, c.actor, c.reason from rowlock.cancel_request c where c.job_id = any ($1)',
    [ids],
  )
  return {
    place,
    picture: {
      jobs: jobs.map(({ id, retried_from, ...job }) => ({
        ...job,
        id: place(id),
        from: place(retried_from),
      })),
      audit: audit.map(({ job_id, detail, ...row }) => ({
        ...row,
        id: place(job_id),
        detail: detail && {
          ...detail,
          ...('new_job_id' in detail && { new_job_id: place(detail.new_job_id) }),
        },
      })),
      keys: keys.map(({ job_id }) => place(job_id)),
      asked: asked.map(({ job_id, ...row }) => ({ ...row, id: place(job_id) })),
    },
  }
}

const FORMS: Readonly<
  Record<
    string,
    (door: Door, verb: BulkVerb, jobs: { id: string; queue: string }[]) => Promise<readonly Said[]>
  >
> = {
  'one job': async (door, verb, [job]) => [await door.one(verb, job!.id)],
  'several ids': (door, verb, jobs) =>
    door.several(
      verb,
      jobs.map(({ id }) => id),
    ),
  // A job that is none of its own by the time of the step is told of as `changed`, and not counted.
  'by filter': async (door, verb, jobs) => {
    const queues = jobs.map(({ queue }) => queue)
    return (await door.filtered(verb, queues)).filter(([answer]) => answer !== 'changed')
  },
}

/** What came of it, through one door. */
async function outcome(door: Door, form: keyof typeof FORMS, verb: BulkVerb, situation: string) {
  const jobs = [await SITUATIONS[situation]!()]
  if (form !== 'one job') jobs.push(await SITUATIONS[situation]!())
  const said = await FORMS[form]!(door, verb, jobs)
  const all = await Promise.all(jobs.map(({ id, queue }) => stored(queue, id)))
  return {
    said: said.map(([answer, state, holder, made], n) => {
      const { place } = all[form === 'by filter' ? 0 : n]!
      return [
        answer,
        state,
        form === 'by filter' ? holder && 'holder' : place(holder),
        made && place(made) !== 0,
      ]
    }),
    stored: all.map(({ picture }) => picture),
  }
}

describe.each(BULK_VERBS)('%s is alike through every door', (verb) => {
  test.each(Object.keys(SITUATIONS))('%s', async (situation) => {
    for (const form of Object.keys(FORMS)) {
      const [first, ...others] = await Promise.all(
        Object.entries(doors).map(async ([name, door]) => ({
          name,
          ...(await outcome(door, form, verb, situation)),
        })),
      )
      for (const { name, said, stored } of others) {
        expect({ form, name, said, stored }).toEqual({ form, name, said: first!.said, stored: first!.stored })
      }
      // That they are alike in doing nothing at all would prove little.
      const [state] = situation.split(',')
      const applies = (statesOf(verb) as readonly string[]).includes(state!)
      const isFree = !situation.includes('taken')
      const changed = first!.stored[0]!.audit.filter((row) => row.verb === verb)
      if (applies && isFree) {
        expect(changed.length, form).toBe(1)
        expect(changed[0]).toMatchObject(BY)
        expect(first!.said.length).toBe(form === 'one job' ? 1 : 2)
      }
      if (!applies && isFree)
        expect([changed, first!.said.length === 0], form).toEqual([[], form === 'by filter'])
    }
  })
})

const settingsOf = (queue: string) =>
  db.sql(
    `select q.paused_at is not null as paused, q.retention_days, q.target_wait::text, q.concurrency, q.max_running,
            q.rate_starts, q.rate_per::text, q.rate_burst
       from rowlock.queue q where q.name = $1`,
    [queue],
  )
const auditOf = (queue: string) =>
  db.sql('select verb, actor, reason, detail from rowlock.audit where queue = $1 order by id', [queue])

describe('a queue is alike through every door', () => {
  test('paused and resumed, once and again', async () => {
    const all = await Promise.all(
      Object.values(doors).map(async (door) => {
        const queue = `q${++queues}`
        const said = [await door.resume(queue), await door.pause(queue), await door.pause(queue)]
        const paused = await settingsOf(queue)
        said.push(await door.resume(queue), await door.resume(queue))
        return { said, paused, resumed: await settingsOf(queue), audit: await auditOf(queue) }
      }),
    )
    expect(all[0]).toMatchObject({ said: [false, true, false, true, false], paused: [{ paused: true }] })
    expect(all[0]!.audit).toMatchObject([
      { verb: 'pause', ...BY },
      { verb: 'resume', ...BY },
    ])
    expect(all[1]).toEqual(all[0])
    expect(all[2]).toEqual(all[0])
  })

  test.each<[Settings, string]>([
    [{ retentionDays: 30 }, 'done'],
    [{ targetWait: '90s' }, 'done'],
    [{ concurrency: 3 }, 'done'],
    [{ concurrency: 3, retentionDays: 1, targetWait: '5s' }, 'done'],
    [{ maxRunning: 3 }, 'done'],
    [{ rate: { starts: 20, per: '90s', burst: 4 }, maxRunning: 5 }, 'done'],
    [{ retentionDays: 8 }, 'INVALID_OPTION'],
    [{ maxRunning: 100_001 }, 'INVALID_OPTION'],
    [{ rate: { starts: 0, per: '1s', burst: 1 } }, 'INVALID_OPTION'],
    [{ rate: { starts: 1, per: '9000000s', burst: 1 } }, 'INVALID_OPTION'],
    [{ rate: { starts: 1, per: '1s', burst: 0 } }, 'INVALID_OPTION'],
    [{ concurrency: 0 }, 'INVALID_OPTION'],
    [{ targetWait: '3000000s' }, 'INVALID_OPTION'],
  ])('set to %j: %s', async (settings, answer) => {
    const all = await Promise.all(
      Object.values(doors).map(async (door) => {
        const queue = `q${++queues}`
        const said = [await door.set(queue, settings)]
        if (settings.concurrency) said.push(await door.set(queue, { concurrency: null }))
        return { said, settings: await settingsOf(queue), audit: await auditOf(queue) }
      }),
    )
    expect(all[0]!.said[0]).toBe(answer)
    expect(all[0]!.audit).toHaveLength(answer === 'done' ? all[0]!.said.length : 0)
    expect(all[1]).toEqual(all[0])
    expect(all[2]).toEqual(all[0])
  })
})

test('a wrong value is refused through every door, and changes nothing', async () => {
  const { id } = await into('queued')
  for (const door of Object.values(doors))
    expect(await door.wrong(id)).toEqual(['INVALID_OPTION', 'INVALID_OPTION'])
  expect(await db.sql('select from rowlock.audit where job_id = $1', [id])).toEqual([])
})
