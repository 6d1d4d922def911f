// Outcomes of jobs, as a worker reports them: many in one statement.

import type { Database } from './database.ts'

interface Ended {
  readonly id: string
  readonly claim_id: string
  /** Which attempt ends; asked for when an answer was lost, not sent. */
  readonly attempt: number
  /** Sent with jobs that are completed together. */
  readonly queue?: string
  readonly ran_ms?: number
}

/** What became of one claimed job, in the form SQL takes. */
export type Outcome =
  | (Ended & { readonly verb: 'complete'; readonly result?: string })
  | (Ended & {
      readonly verb: 'fail'
      readonly outcome: 'failed' | 'timed_out'
      readonly cause: string
      readonly error: unknown
      readonly permanent?: boolean
      readonly after_ms?: number
    })
  | (Ended & { readonly verb: 'snooze'; readonly after_ms: number })
  | (Ended & { readonly verb: 'hand_back'; readonly cause?: string })
  | (Ended & { readonly verb: 'abandon'; readonly reason?: string })

/** What a finish changed; an outcome in neither had another owner. */
export interface Finished {
  readonly completed: readonly string[]
  readonly moved: readonly { readonly id: string; readonly to: string; readonly available_at: number }[]
}

/**
 * Safe to repeat: each outcome names its claim, and a claim ends once.
 * Source: sql/functions/finish.sql
 */
export function finish(
  database: Database,
  outcomes: readonly Outcome[],
  timeoutMs: number,
): Promise<Finished> {
  return database.call('finish', '$1::text::jsonb', [outcomesJson(outcomes)], { timeoutMs, write: 'finish' })
}

/** Rows of one table are locked in id order, so each verb's jobs are sorted. */
export function outcomesJson(outcomes: readonly Outcome[]): string {
  const byVerb = new Map<string, string[]>()
  const alike = new Map<string, Together>()
  for (const outcome of [...outcomes].sort(byId)) {
    if (outcome.verb === 'complete') {
      addTo(alike, outcome)
      continue
    }
    const text = endedJson(outcome)
    const known = byVerb.get(outcome.verb)
    if (known) known.push(text)
    else byVerb.set(outcome.verb, [text])
  }
  if (alike.size > 0) byVerb.set('complete', [...alike.values()].map(togetherJson))
  return `{${[...byVerb].map(([verb, jobs]) => `"${verb}":[${jobs.join(',')}]`).join(',')}}`
}

/** Jobs of one claim and one queue, all of them with a result or none. */
interface Together {
  readonly claimId: string
  readonly queue: string | undefined
  readonly ids: string[]
  readonly ranEach: (number | 'NULL')[]
  readonly results: string[]
}

function addTo(alike: Map<string, Together>, outcome: Extract<Outcome, { verb: 'complete' }>): void {
  const { id, claim_id, ran_ms, queue, result } = outcome
  const key = `${claim_id}${result === undefined ? '-' : '+'}${queue}`
  let together = alike.get(key)
  if (together === undefined) {
    together = { claimId: claim_id, queue, ids: [], ranEach: [], results: [] }
    alike.set(key, together)
  }
  together.ids.push(id)
  together.ranEach.push(ran_ms ?? 'NULL')
  if (result !== undefined) together.results.push(result)
}

/** Ids and times are SQL arrays as text, which are read faster than those of JSON. A result is JSON already. */
function togetherJson({ claimId, queue, ids, ranEach, results }: Together): string {
  const name = queue === undefined ? '' : `,"queue":${JSON.stringify(queue)}`
  const lists = `"ids":"{${ids.join()}}","ran_each":"{${ranEach.join()}}"`
  const ends = results.length === 0 ? '' : `,"results":[${results.join()}]`
  return `{"claim_id":"${claimId}"${name},${lists}${ends}}`
}

function endedJson({ verb: _verb, attempt: _attempt, queue: _queue, ...ended }: Outcome): string {
  return JSON.stringify(ended)
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id.length - b.id.length || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}
