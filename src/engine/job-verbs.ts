// The verbs that change jobs by their ids, one job or many; in their own transactions or in the caller's.

import { checkId } from '../ground/id.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import type { BulkVerb } from '../ground/states.ts'
import { Looks } from './looks.ts'
import { type Answer, changeMany, type Ids } from './many.ts'
import { checkOperator, type Operator } from './operator.ts'

/** The verbs for jobs that are named by their ids. */
export class JobVerbs extends Looks {
  /**
   * Ask for a job to be stopped for good. A running job is aborted at its worker's next heartbeat, or at once where
   * LISTEN works; it is cancelled when its handler ends, unless the handler ends well.
   *
   * Transaction: may run in the caller's (READ COMMITTED); locks the job's row.
   * Errors: JOB_NOT_FOUND, JOB_BUSY, WRONG_ISOLATION. A job that has already ended is left alone.
   * Source: sql/functions/cancel.sql
   */
  async cancel(id: string, operator: Operator = {}): Promise<'cancelled' | 'requested' | 'already_ended'> {
    return this.#byId('cancel', id, operator)
  }

  /**
   * Make a scheduled or retryable job due at once.
   *
   * Transaction: may run in the caller's; locks the job's row.
   * Errors: JOB_NOT_FOUND, JOB_BUSY, WRONG_STATE, WRONG_ISOLATION.
   * Source: sql/functions/run_now.sql
   */
  async runNow(id: string, operator: Operator = {}): Promise<void> {
    await this.#byId('run_now', id, operator)
  }

  /**
   * Change the priority of a waiting job.
   *
   * Unit: −10 to 10, higher first.
   * Transaction: may run in the caller's; locks the job's row.
   * Errors: INVALID_OPTION, JOB_NOT_FOUND, JOB_BUSY, WRONG_STATE, WRONG_ISOLATION.
   * Source: sql/functions/prioritize.sql
   */
  async prioritize(id: string, priority: number, operator: Operator = {}): Promise<void> {
    await this.#byId('prioritize', id, operator, '$4::text::integer', [String(checkPriority(priority))])
  }

  /**
   * Put a dead letter back in its queue: the same job, its failures forgotten.
   *
   * Transaction: may run in the caller's; takes the job's dedupe key again.
   * Errors: JOB_NOT_FOUND, WRONG_STATE, DEDUPE_KEY_TAKEN with `holder`, WRONG_ISOLATION.
   * Source: sql/functions/redrive.sql
   */
  async redrive(id: string, operator: Operator = {}): Promise<void> {
    await this.#byId('redrive', id, operator)
  }

  /**
   * Give a dead letter up: it moves to history as cancelled, reason `discarded`.
   *
   * Errors: JOB_NOT_FOUND, WRONG_STATE, WRONG_ISOLATION.
   * Source: sql/functions/discard.sql
   */
  async discard(id: string, operator: Operator = {}): Promise<void> {
    await this.#byId('discard', id, operator)
  }

  /**
   * Run an ended job again: a new job with the same input and settings. Answers the new job's id.
   *
   * Transaction: may run in the caller's; takes the job's dedupe key.
   * Errors: JOB_NOT_FOUND, WRONG_STATE, DEDUPE_KEY_TAKEN with `holder`, WRONG_ISOLATION.
   * Source: sql/functions/retry.sql
   */
  async retry(id: string, operator: Operator = {}): Promise<{ readonly id: string }> {
    return { id: await this.#byId<string>('retry', id, operator) }
  }

  /**
   * Delete an ended job for good: out of history, with its attempts and its input. What was done, by whom and why, can
   * still be read among the changes. A dead letter is discarded first.
   *
   * Errors: JOB_NOT_FOUND, JOB_BUSY, WRONG_STATE, WRONG_ISOLATION.
   * Source: sql/functions/purge.sql
   */
  async purge(id: string, operator: Operator = {}): Promise<void> {
    await this.#byId('purge', id, operator)
  }

  /**
   * Ask for jobs to be stopped for good, as {@link cancel} asks for one. Answers a line for each id, in order:
   * `cancelled`, `requested`, `already_ended`, `not_found` or `busy`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/cancel_many.sql
   */
  async cancelMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('cancel', ids, operator)
  }

  /**
   * Make scheduled and retryable jobs due at once. Answers a line for each id, in order: `due`, or why it was left
   * alone: `not_found`, `wrong_state`, `busy`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/run_now_many.sql
   */
  async runNowMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('run_now', ids, operator)
  }

  /**
   * Change the priority of waiting jobs. Answers a line for each id, in order: `prioritized`, or why it was left
   * alone: `not_found`, `wrong_state`, `busy`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/prioritize_many.sql
   */
  async prioritizeMany(ids: Ids, priority: number, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('prioritize', ids, operator, checkPriority(priority))
  }

  /**
   * Put dead letters back in their queues. Answers a line for each id, in order: `redriven`, or why it was left
   * alone: `not_found`, `wrong_state`, `busy`, `dedupe_key_taken`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/redrive_many.sql
   */
  async redriveMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('redrive', ids, operator)
  }

  /**
   * Give dead letters up. Answers a line for each id, in order: `discarded`, or why it was left alone: `not_found`,
   * `wrong_state`, `busy`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/discard_many.sql
   */
  async discardMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('discard', ids, operator)
  }

  /**
   * Run ended jobs again, as new jobs. Answers a line for each id, in order: `retried` with `newJobId`, or why it
   * was left alone: `not_found`, `wrong_state`, `busy`, `dedupe_key_taken`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/retry_many.sql
   */
  async retryMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('retry', ids, operator)
  }

  /**
   * Delete ended jobs for good. Answers a line for each id, in order: `purged`, or why it was left alone:
   * `not_found`, `wrong_state`, `busy`.
   *
   * Transaction: up to 1,000 jobs each, so that locks stay short; all in the caller's where there is one.
   * Errors: INVALID_OPTION, WRONG_ISOLATION; OUTCOME_UNKNOWN and others after which earlier thousands are done:
   *   {@link answersOf}.
   * Source: sql/functions/purge_many.sql
   */
  async purgeMany(ids: Ids, operator: Operator = {}): Promise<readonly Answer[]> {
    return this.#many('purge', ids, operator)
  }

  #byId<T>(verb: string, id: string, operator: Operator, more = '', values: unknown[] = []): Promise<T> {
    const { actor, reason } = checkOperator(operator)
    const args = `$1::text::bigint, ${more}${more && ', '}$2::text, $3::text`
    return this.call<T>(verb, args, [checkId(id), actor ?? null, reason ?? null, ...values])
  }

  #many(verb: BulkVerb, ids: Ids, operator: Operator, priority?: number): Promise<readonly Answer[]> {
    return changeMany(this.database, this.queryable, verb, ids, checkOperator(operator), priority)
  }

  /** Call a verb where this object's verbs run. */
  protected call<T>(verb: string, args: string, values: unknown[]): Promise<T> {
    if (this.queryable !== undefined) return this.database.callOn<T>(this.queryable, verb, args, values)
    return this.database.call<T>(verb, args, values, { write: verb })
  }
}

/** Check a priority. Errors: INVALID_OPTION. */
export function checkPriority(priority: unknown): number {
  const { min, max } = LIMITS.priority
  return checkInteger(priority, { name: 'priority', min, max })
}
