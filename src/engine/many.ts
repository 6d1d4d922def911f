// One verb for many jobs that are named by their ids: cut into calls that keep their locks short, answered in order.

import { RowlockError } from '../ground/errors.ts'
import { checkId } from '../ground/id.ts'
import { LIMITS } from '../ground/limits.ts'
import { show } from '../ground/show.ts'
import type { BulkVerb, State } from '../ground/states.ts'
import type { Database } from './database.ts'
import type { Operator } from './operator.ts'
import type { Queryable } from './seam.ts'

/** Ids of jobs, in any form that can be gone through once. */
export type Ids = Iterable<string>

/** What a verb answers that changed a job. */
export type Change =
  | 'cancelled'
  | 'requested'
  | 'due'
  | 'prioritized'
  | 'redriven'
  | 'discarded'
  | 'retried'
  | 'purged'
/** Why a verb left a job as it was. `changed`: the filter of a bulk change does not find it any more. */
export type Refusal = 'already_ended' | 'not_found' | 'busy' | 'wrong_state' | 'dedupe_key_taken' | 'changed'

/** What became of one job of many. */
export interface Answer {
  readonly id: string
  readonly answer: Change | Refusal
  readonly detail: AnswerDetail | null
}

/** What an answer says besides. */
export interface AnswerDetail {
  /** Of `wrong_state`: where the job is. */
  readonly state?: State
  /** Of `dedupe_key_taken`: the live job that has the key. */
  readonly holder?: string
  /** Of `retried`. */
  readonly newJobId?: string
}

/** An answer as SQL gives it. */
export type WireAnswer = readonly [
  id: string,
  answer: Answer['answer'],
  detail: Record<string, unknown> | null,
]

/** In the words of TypeScript. */
export function readAnswer([id, answer, detail]: WireAnswer): Answer {
  if (detail === null || !('new_job_id' in detail)) return { id, answer, detail }
  const { new_job_id: newJobId, ...rest } = detail
  return { id, answer, detail: { ...rest, newJobId: String(newJobId) } }
}

/**
 * What became of those jobs that a call for many had come to before it failed: their changes are committed. Of the
 * thousand that failed nothing is among them. Empty for every other error, and in a transaction of yours, which takes
 * everything back.
 *
 * @example
 * try {
 *   await rowlock.cancelMany(ids)
 * } catch (error) {
 *   const seen = new Set(answersOf(error).map(({ id }) => id))
 *   console.log(`${seen.size} of ${ids.length} were looked at`)
 * }
 */
export function answersOf(error: unknown): readonly Answer[] {
  return ((error ?? {}) as { answers?: readonly Answer[] }).answers ?? []
}

/**
 * Do a verb to the jobs with these ids. On connections of ours, each thousand is a transaction of its own: when one
 * fails, those before it are done, and the error has their answers.
 *
 * Errors: INVALID_OPTION before anything is sent; those of the database, with {@link answersOf}.
 * Source: sql/functions/cancel_many.sql and its siblings
 */
export async function changeMany(
  database: Database,
  queryable: Queryable | undefined,
  verb: BulkVerb,
  ids: Ids,
  { actor, reason }: Operator,
  priority?: number,
): Promise<readonly Answer[]> {
  const all = checkIds(ids)
  const unique = [...new Set(all)]
  const text = `
select coalesce(jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n), '[]')::text as reply
  from rowlock.${verb}_many(p_ids => $1::text::bigint[], p_actor => $2::text, p_reason => $3::text
         ${priority === undefined ? '' : ', p_priority => $4::text::integer'})
         with ordinality as a (id, answer, detail, n)`
  const found = new Map<string, Answer>()
  const { max } = LIMITS.jobsPerChange
  for (let done = 0; done < unique.length; done += max) {
    const values = [`{${unique.slice(done, done + max).join(',')}}`, actor ?? null, reason ?? null]
    if (priority !== undefined) values.push(String(priority))
    const send = (through: Queryable) => database.queryOn<{ reply: string }>(through, text, values)
    const sent = queryable === undefined ? database.transaction(send, { write: verb }) : send(queryable)
    const [row] = await sent.catch((error: unknown) => {
      if (queryable === undefined && found.size > 0) attach(error, [...found.values()])
      throw error
    })
    for (const answer of JSON.parse(row!.reply) as WireAnswer[]) found.set(answer[0], readAnswer(answer))
  }
  return all.map((id) => found.get(id)!)
}

/** Not enumerable: a log that shows the error shall not list thousands of jobs. */
function attach(error: unknown, answers: readonly Answer[]): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  Object.defineProperty(error, 'answers', { value: answers, configurable: true })
}

function checkIds(ids: Ids): readonly string[] {
  if (typeof ids === 'string' || ids === null || typeof ids !== 'object' || !(Symbol.iterator in ids)) {
    throw new RowlockError('INVALID_OPTION', `ids must be an array of ids; got ${show(ids, 40)}`, {
      path: 'ids',
    })
  }
  return Array.from(ids, (id, n) => checkId(id, `ids[${n}]`))
}
