// Runs a handler inside a transaction of its own, in which its job is completed: both commit, or neither.

import { type Outcome, outcomesJson } from '../engine/finish.ts'
import { start } from '../engine/lease.ts'
import type { PooledClient } from '../engine/seam.ts'
import { isConnectionError } from '../engine/translate.ts'
import { wereCompleted } from '../engine/were-completed.ts'
import { RowlockError } from '../ground/errors.ts'
import type { HandlerContext, TransactionContext } from './handler.ts'
import { through } from './middleware.ts'
import type { Run } from './run.ts'
import type { RunnerOptions } from './runner.ts'

/**
 * Null: committed, or another owner has the job. Throws what the handler threw, after the rollback.
 *
 * The session holds a key share on the job's row: when the session is gone, so is the lock, and the reaper gives the
 * job back without waiting for the lease. The lock is taken before the row is marked, so that no marked row is unlocked
 * while its session lives.
 */
export async function runInTransaction(
  run: Run,
  context: HandlerContext,
  options: RunnerOptions,
  outcomeOf: (value: unknown) => Outcome | Promise<Outcome>,
): Promise<null> {
  const { job } = run
  const { transactions } = options
  const client = await transactions.connect()
  const cut = makeCut(client)
  const ignore = () => {}
  client.on?.('error', ignore)
  let isBroken = false
  run.onAbort(cut.now)
  try {
    await client.query('begin isolation level read committed read write')
    const leftMs = Math.max(1_000, Math.ceil(run.deadlineAt - performance.now()) + 1_000)
    await client.query(`set local statement_timeout = ${leftMs}`)
    await client.query(`set local idle_in_transaction_session_timeout = ${leftMs}`)
    await transactions.callOn(client, 'hold', '$1::text::bigint, $2::text::uuid', [job.id, job.claimId])
    const marks = [{ ...run.asStarted, in_transaction: true }]
    if (!(await start(options.database, marks, options.timeoutMs)).has(job.id)) throw lost(job.id)
    run.told = true

    const inside: TransactionContext = Object.defineProperty(
      {
        ...context,
        tx: { query: (text: string, values?: unknown[]) => client.query(text, values) },
      } as TransactionContext,
      'signal',
      { get: () => run.signal, enumerable: true },
    )
    const value = await through(options.middleware, inside, run.handler.run)
    await settle(run, await outcomeOf(value), client, options)
    await commit(run, client, options)
    return null
  } catch (error) {
    isBroken = cut.isCut || isConnectionError(error)
    if (!isBroken) {
      await client.query('rollback').catch(() => {
        isBroken = true
      })
    }
    if (error instanceof RowlockError && error.code === 'LEASE_LOST') run.abort('lease_lost')
    throw error
  } finally {
    client.removeListener?.('error', ignore)
    client.release(isBroken || cut.isCut)
  }
}

/** The outcome, written in the handler's transaction. Errors: LEASE_LOST. */
async function settle(
  run: Run,
  outcome: Outcome,
  client: PooledClient,
  options: RunnerOptions,
): Promise<void> {
  const { transactions } = options
  const { id, claim_id } = outcome
  if (outcome.verb === 'complete') {
    const args = '$1::text::bigint, $2::text::uuid, $3::text::jsonb, $4::text::double precision'
    const values = [id, claim_id, outcome.result ?? null, String(Math.round(run.ranMs))]
    await transactions.callOn(client, 'complete_in_transaction', args, values)
    return
  }
  const reply = await transactions.callOn<{ moved: unknown[] }>(client, 'finish', '$1::text::jsonb', [
    outcomesJson([outcome]),
  ])
  if (reply.moved.length === 0) throw lost(id)
}

/** A commit whose answer was lost may have happened: then the job is done, and there is nothing left to say. */
async function commit(run: Run, client: PooledClient, options: RunnerOptions): Promise<void> {
  try {
    await client.query('commit')
  } catch (error) {
    if (!isConnectionError(error)) throw error
    const done = await wereCompleted(options.database, [run.job.id]).catch(() => new Set())
    if (!done.has(run.job.id)) throw error
  }
}

const lost = (id: string) => new RowlockError('LEASE_LOST', `job ${id} has another owner by now`)

/** At an abort the connection is cut: what the handler waits for fails at once, and nothing of it can commit. */
function makeCut(client: PooledClient): { readonly now: () => void; readonly isCut: boolean } {
  let isCut = false
  return {
    now: () => {
      isCut = true
      const { connection } = client as { connection?: { stream?: { destroy?: () => void } } }
      connection?.stream?.destroy?.()
    },
    get isCut() {
      return isCut
    },
  }
}
