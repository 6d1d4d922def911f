// The ways to take a job from a table that every textbook has, from the naive one on, over one table and one index.

import type pg from 'pg'
import { clientOf } from '../kit/counted.ts'
import type { BenchServer } from '../kit/server.ts'
import { fillWaiting, rowlockOn } from './database.ts'
import { Hand } from './hand.ts'

/** A job in somebody's hands. */
export interface Held {
  readonly id: string
  /** Say how it ended. */
  end(isWell: boolean): Promise<void>
}

/** One worker of a shape, with a connection of its own. */
export interface Taker {
  /** The next jobs; none: nothing is to be had at the moment. */
  take(): Promise<readonly Held[]>
  /** So often it waited for a lock for longer than a millisecond, in takes and ends. */
  lockWaits(): number
  close(): Promise<void>
}

/** A way to take jobs. */
export interface Shape {
  readonly name: string
  readonly how: string
  /** A fresh database with so many jobs waiting; ids from 1. Answers its URL. */
  prepare(server: BenchServer, name: string, jobs: number): Promise<string>
  taker(url: string): Promise<Taker>
  /** Jobs that have not ended. */
  left: string
  /** Failures that are on record afterwards. */
  failures: string
}

const TABLE = `
create table jobs (
  id bigserial primary key,
  state text not null default 'queued',
  failures integer not null default 0,
  payload jsonb not null
);
create index jobs_queued on jobs (id) where state = 'queued';`

async function prepareTable(server: BenchServer, name: string, jobs: number): Promise<string> {
  const url = await server.database(name)
  const client = await clientOf(url)
  await client.query(TABLE)
  await client.query(`insert into jobs (payload) select '{"n": 1}' from generate_series(1, $1::integer)`, [
    jobs,
  ])
  await client.query('vacuum analyze jobs')
  await client.end()
  return url
}

const HEAD = `select id from jobs where state = 'queued' order by id limit 1`
const MARK = `update jobs set state = 'running' where id = $1`
const DONE = `update jobs set state = 'done' where id = $1`
const BACK = `update jobs set state = 'queued', failures = failures + 1 where id = $1`
const TABLE_SHAPE = {
  prepare: prepareTable,
  left: `select count(*)::integer as n from jobs where state <> 'done'`,
  failures: 'select coalesce(sum(failures), 0)::integer as n from jobs',
} as const

/** Count the waits of a session: the server tells it of each that lasts a millisecond. */
async function watched(client: pg.Client): Promise<() => number> {
  let waits = 0
  client.on('notice', ({ message }) => {
    if (message?.includes('still waiting for')) waits++
  })
  await client.query(`set deadlock_timeout = '1ms'; set log_lock_waits = on; set client_min_messages = 'log'`)
  return () => waits
}

function inTwoSteps(take: (client: pg.Client) => Promise<string | undefined>): Shape['taker'] {
  return async (url) => {
    const client = await clientOf(url)
    const lockWaits = await watched(client)
    const one = async (): Promise<Held[]> => {
      const id = await take(client)
      if (id === undefined) return []
      return [{ id, end: async (isWell) => void (await client.query(isWell ? DONE : BACK, [id])) }]
    }
    return { take: one, lockWaits, close: () => client.end() }
  }
}

function locking(clause: string): (client: pg.Client) => Promise<string | undefined> {
  return async (client) => {
    await client.query('begin')
    const { rows } = await client.query(`${HEAD} ${clause}`)
    if (rows.length > 0) await client.query(MARK, [rows[0].id])
    await client.query('commit')
    return rows[0]?.id
  }
}

/** Between the select and the update of the naive shape. Unit: ms. */
const PAUSE_MS = 1

/** The shapes of the textbook, and ours in the same harness. */
export const SHAPES: readonly Shape[] = [
  {
    ...TABLE_SHAPE,
    name: 'naive',
    how: `select the first queued row; ${PAUSE_MS} ms later update it to running; work; update it to done`,
    taker: inTwoSteps(async (client) => {
      const { rows } = await client.query(HEAD)
      if (rows.length === 0) return undefined
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      await client.query(MARK, [rows[0].id])
      return rows[0].id
    }),
  },
  {
    ...TABLE_SHAPE,
    name: 'for update',
    how: 'select the first queued row for update, update it to running, commit; work; update it to done',
    taker: inTwoSteps(locking('for update')),
  },
  {
    ...TABLE_SHAPE,
    name: 'one transaction',
    how: 'select for update skip locked, work, update to done, commit; a failure rolls back',
    async taker(url) {
      const client = await clientOf(url)
      const lockWaits = await watched(client)
      return {
        async take() {
          await client.query('begin')
          const { rows } = await client.query(`${HEAD} for update skip locked`)
          if (rows.length === 0) {
            await client.query('rollback')
            return []
          }
          const { id } = rows[0]
          const end = async (isWell: boolean) => {
            if (isWell) await client.query(DONE, [id])
            await client.query(isWell ? 'commit' : 'rollback')
          }
          return [{ id, end }]
        },
        lockWaits,
        close: () => client.end(),
      }
    },
  },
  {
    ...TABLE_SHAPE,
    name: 'skip locked',
    how: 'select for update skip locked, update to running, commit; work; update it to done',
    taker: inTwoSteps(locking('for update skip locked')),
  },
  ours('rowlock, 1 a claim', 1),
  ours('rowlock, 20 a claim', 20),
]

function ours(name: string, limit: number): Shape {
  return {
    name,
    how: `the verbs claim (at most ${limit}) and finish (as many as were claimed); history kept`,
    left: `select ((select count(*) from rowlock.waiting) + (select count(*) from rowlock.running))::integer as n`,
    failures: `select count(*)::integer as n from rowlock.attempt where outcome = 'failed'`,
    async prepare(server, database, jobs) {
      const url = await rowlockOn(server, database)
      const client = await clientOf(url)
      await fillWaiting(client, jobs)
      await client.query('vacuum analyze rowlock.waiting')
      await client.end()
      return url
    },
    async taker(url) {
      const hand = await Hand.on(url)
      const lockWaits = await watched(hand.client)
      return {
        async take() {
          const jobs = await hand.claim({ limit })
          const well: typeof jobs = []
          let open = jobs.length
          return jobs.map((job) => ({
            id: job.id,
            async end(isWell: boolean) {
              if (isWell) well.push(job)
              else await hand.fail(job)
              if (--open === 0 && well.length > 0) await hand.complete(well)
            },
          }))
        },
        lockWaits,
        close: () => hand.end(),
      }
    },
  }
}
