// How a victim dies, or lets its server die: at once, by its own hand, or while a statement of its waits for a lock.

import pg from 'pg'
import { type Order, WAITS_FOR } from './points.ts'

const LOOK_EVERY_MS = 2
const GONE_AT_MOST_MS = 5_000
/** A transaction of ours may have the table: it goes on meanwhile. */
const LOCK_MS = 50
const LOCK_TRIES = 10

/** Nothing of this process happens after it, or, when it is the server that dies, before that is gone. */
export function strike({ server }: Order): void {
  if (server === undefined) {
    process.kill(process.pid, 'SIGKILL')
    // The signal is on its way; nothing more is to happen.
    for (;;);
  }
  process.kill(server, 'SIGQUIT')
  const until = performance.now() + GONE_AT_MOST_MS
  while (isThere(server)) {
    if (performance.now() > until) throw new Error(`the server, process ${server}, outlives its SIGQUIT`)
    rest(LOOK_EVERY_MS)
  }
  process.send!({ crash: true })
}

/** Send a statement, and strike when it waits for a lock, or else as soon as it is written. Answers what it does. */
export async function strikeDuring(
  label: string,
  order: Order,
  send: () => Promise<unknown>,
): Promise<unknown> {
  const blocker = await block(WAITS_FOR[label], order.url)
  const answer = send()
  answer.catch(() => {})
  if (blocker === undefined) {
    // The driver writes at the end of this turn; the answer cannot have been read before the next.
    await new Promise((resolve) => setImmediate(resolve))
  } else if (await untilWaits(blocker, answer)) {
    await new Promise((resolve) => process.send!({ waits: true }, resolve))
  }
  strike(order)
  await blocker?.end().catch(() => {})
  return answer
}

/** A session that has the tables for itself; undefined when nothing is named, or others do not let go of it. */
async function block(tables: string | undefined, url: string): Promise<pg.Client | undefined> {
  if (tables === undefined) return undefined
  const client = new pg.Client({ connectionString: url, application_name: 'blocker' })
  client.on('error', () => {})
  await client.connect()
  for (let left = LOCK_TRIES; left > 0; left--) {
    try {
      await client.query(`begin; set local lock_timeout = ${LOCK_MS}; lock table ${tables}`)
      return client
    } catch {
      await client.query('rollback')
    }
  }
  await client.end()
  return undefined
}

/** False: it was answered instead. */
async function untilWaits(blocker: pg.Client, answer: Promise<unknown>): Promise<boolean> {
  let isAnswered = false
  const note = () => {
    isAnswered = true
  }
  void answer.then(note, note)
  while (!isAnswered) {
    const { rows } = await blocker.query(
      'select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid)) limit 1',
    )
    if (rows.length > 0) return true
  }
  return false
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function rest(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
