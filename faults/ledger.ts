// What a handler calls to say what it does: over a connection of its own, which no fault of the queue's takes away.

import pg from 'pg'
import type { How } from './history.ts'

/** The ledger of one process. */
export interface Ledger {
  /** Begin to write of one call of a handler. */
  call(job: { readonly id: string; readonly attempt: number }, key: string): Entry
  close(): Promise<void>
}

/** What one call of a handler writes. Each is tried again while the server is away, until `giveUp` says so. */
export interface Entry {
  start(giveUp?: AbortSignal): Promise<void>
  /** The server's process of the handler's transaction. */
  session(pid: number, giveUp?: AbortSignal): Promise<void>
  effect(giveUp?: AbortSignal): Promise<void>
  end(how: How, giveUp?: AbortSignal): Promise<void>
}

const AGAIN_AFTER_MS = 50
/** What an aborted handler may still take to write its end. */
const LAST_WORD_MS = 600

/** Open the ledger in the database that has faults/audit.sql. */
export function openLedger(connectionString: string): Ledger {
  const pool = new pg.Pool({ connectionString, max: 4, application_name: 'ledger', allowExitOnIdle: true })
  pool.on('error', () => {})
  let runs = 0
  return {
    call({ id, attempt }, key) {
      const run = ++runs
      const write = (phase: string, how: How | null, giveUp?: AbortSignal) =>
        insist(pool, LEDGER, [id, attempt, key, process.pid, run, phase, how], giveUp)
      return {
        start: (giveUp) => write('start', null, giveUp),
        session: (pid, giveUp) => insist(pool, SESSION, [id, attempt, pid], giveUp),
        effect: (giveUp) => write('effect', null, giveUp),
        end: (how, giveUp) => write('end', how, giveUp),
      }
    },
    close: () => pool.end(),
  }
}

const LEDGER = `insert into faults.ledger (job_id, attempt, key, pid, run, phase, how)
  values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`
const SESSION = 'insert into faults.session (job_id, attempt, pid) values ($1, $2, $3) on conflict do nothing'

async function insist(pool: pg.Pool, text: string, values: unknown[], giveUp?: AbortSignal): Promise<void> {
  let abortedAt = giveUp?.aborted ? performance.now() : Number.POSITIVE_INFINITY
  const note = () => {
    abortedAt = Math.min(abortedAt, performance.now())
  }
  giveUp?.addEventListener('abort', note)
  try {
    for (;;) {
      try {
        await pool.query(text, values)
        return
      } catch (error) {
        if (performance.now() > abortedAt + LAST_WORD_MS) throw error
        await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS))
      }
    }
  } finally {
    giveUp?.removeEventListener('abort', note)
  }
}
