// Runs a handler inside a transaction of its own, in which its job is completed: both commit, or neither.

import { type Finished, type Outcome, outcomesJson } from '../engine/finish.ts'
import { type StartedJob, start } from '../engine/lease.ts'
import { wereWritten } from '../engine/were-written.ts'
import { isRowlockError, RowlockError } from '../ground/errors.ts'
import type { HandlerContext, TransactionContext } from './handler.ts'
import { through } from './middleware.ts'
import { persist } from './persist.ts'
import type { Run } from './run.ts'
import type { RunnerOptions } from './runner-options.ts'
import { Session } from './session.ts'
import { within } from './within.ts'

/**
 * Null: committed. An outcome: the handler was never called. Throws what the handler threw, after the rollback.
 *
 * The session holds a key share on the job's row, which is marked with its process: when the session is gone, so are
 * lock and process, and the reaper gives the job back without waiting for the lease. The lock is taken before the row
 * is marked. After a statement that failed the process alone says that the session lives.
 */
export async function runInTransaction(
  run: Run,
  context: HandlerContext,
  options: RunnerOptions,
  outcomeOf: (value: unknown) => Outcome | Promise<Outcome>,
): Promise<Outcome | null> {
  const unmark = once(() => takeMarkBack(run, options))
  // Whoever lost the job leaves the mark: the reaper goes by it.
  const letGo = async () => (run.abortCause === 'lease_lost' ? undefined : await unmark())
  const session = await wait(run, options, letGo)
  if (session === undefined) {
    const { id, claimId: claim_id, attempt } = run.job
    return { verb: 'hand_back', id, claim_id, attempt }
  }
  run.told = true
  run.begin()
  session.onGone(() => run.abort('lease_lost', 'the session of its transaction is gone'))
  try {
    const inside: TransactionContext = Object.defineProperties({} as TransactionContext, {
      ...Object.getOwnPropertyDescriptors(context),
      tx: { value: session.tx, enumerable: true },
    })
    const value = await through(options.middleware, inside, run.handler.run)
    const outcome = await outcomeOf(value)
    const to = await settle(outcome, session, options)
    await commit(outcome, session, options)
    options.onCommitted(outcome, to)
  } catch (error) {
    if (!session.isBroken) await letGo()
    await session.rollback()
    throw error
  } finally {
    run.onAbort(undefined)
  }
  session.release()
  return null
}

/**
 * What becomes of the job is said here, after its session has let go of the row: between the two a reaper must not take
 * it for a session that died.
 */
async function takeMarkBack(run: Run, { database, timeoutMs }: RunnerOptions): Promise<void> {
  const marks = [{ ...run.asStarted, in_transaction: false }]
  await within(start(database, marks, timeoutMs), MARK_MS)
}

const MARK_MS = 1_000

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => {
    asked ??= ask()
    return asked
  }
}

/**
 * Undefined: the job goes back, for there was no connection in all the time that it may take, or it is not ours to
 * begin. Throws why it was aborted for anything else; then its handler is not called either.
 */
async function wait(
  run: Run,
  options: RunnerOptions,
  letGo: () => Promise<void>,
): Promise<Session | undefined> {
  const discard = async (session: Session | undefined) => {
    await letGo()
    await session?.rollback()
  }
  try {
    const session = await persist(run, () => begin(run, options, letGo), discard)
    if (run.abortReason === undefined) return session
    await discard(session)
    throw run.abortReason
  } catch (error) {
    if (run.abortCause === 'timeout' || run.abortCause === 'cancelled') return undefined
    throw error
  }
}

/** Undefined: the job has another owner, or somebody holds its row just now. */
async function begin(
  run: Run,
  options: RunnerOptions,
  letGo: () => Promise<void>,
): Promise<Session | undefined> {
  const { database, transactions, timeoutMs } = options
  const session = await Session.open(transactions, database, timeoutMs)
  try {
    if (run.abortReason !== undefined) throw run.abortReason
    run.onAbort(() => session.cut())
    const { id, claimId } = run.job
    await session.begin(Math.ceil(run.timeoutMs) + 1_000)
    await session.call('hold', '$1::text::bigint, $2::text::uuid', [id, claimId])
    // While the mark is on its way nothing is cut: it could be taken back before it is there.
    run.onAbort(undefined)
    const mark = { ...run.asStarted, ago_ms: 0, in_transaction: true }
    const kept = await start(database, [withPid(mark, session.pid)], timeoutMs)
    run.onAbort(() => void letGo().then(() => session.cut()))
    if (kept.has(id)) return session
    await session.rollback()
    return undefined
  } catch (error) {
    run.onAbort(undefined)
    await session.rollback()
    if (isRowlockError(error, 'LEASE_LOST')) return undefined
    throw error
  }
}

const withPid = (mark: StartedJob, pid: number | undefined): StartedJob =>
  pid === undefined ? mark : { ...mark, session_pid: pid }

/** The outcome, written in the handler's transaction: answers the job's state. Errors: LEASE_LOST. */
async function settle(outcome: Outcome, session: Session, options: RunnerOptions): Promise<string> {
  if (outcome.verb === 'complete') {
    const args = '$1::text::bigint, $2::text::uuid, $3::text::jsonb, $4::text::double precision'
    const { id, claim_id, result, ran_ms } = outcome
    await session.call('complete_in_transaction', args, [id, claim_id, result ?? null, String(ran_ms ?? 0)])
    return 'done'
  }
  await session.call('require_held', '$1::text::uuid', [outcome.claim_id])
  const json = outcomesJson([outcome])
  const { moved } = await session.call<Pick<Finished, 'moved'>>('finish', '$1::text::jsonb', [json])
  if (moved[0] !== undefined) return moved[0].to
  options.logger.warn({ jobId: outcome.id }, 'a transaction was rolled back: its job had another owner')
  throw new RowlockError('LEASE_LOST', `job ${outcome.id} has another owner by now`)
}

/** A commit whose answer was lost may have happened: then there is nothing left to say. */
async function commit(outcome: Outcome, session: Session, options: RunnerOptions): Promise<void> {
  try {
    await session.commit()
  } catch (error) {
    if (!session.isBroken) throw error
    const written = await wereWritten(options.database, [outcome], options.timeoutMs).catch(() => new Set())
    if (!written.has(outcome.id)) throw error
  }
}
