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
    if (outcome.verb === 'complete' && outcome.queue !== undefined && outcome.result === undefined) {
      addTo(alike, outcome, outcome.queue)
      continue
    }
    const text = outcome.verb === 'complete' ? completedJson(outcome) : endedJson(outcome)
    const known = byVerb.get(outcome.verb)
    if (known) known.push(text)
    else byVerb.set(outcome.verb, [text])
  }
  if (alike.size > 0) {
    const groups = [...alike.values()].map(togetherJson)
    byVerb.set('complete', groups.concat(byVerb.get('complete') ?? []))
  }
  return `{${[...byVerb].map(([verb, jobs]) => `"${verb}":[${jobs.join(',')}]`).join(',')}}`
}

/** Jobs of one claim and one queue that have no result. */
interface Together {
  readonly claimId: string
  readonly queue: string
  readonly ids: string[]
  readonly ranEach: (number | 'NULL')[]
}

function addTo(alike: Map<string, Together>, { id, claim_id, ran_ms }: Ended, queue: string): void {
  const key = claim_id + queue
  let together = alike.get(key)
  if (together === undefined) {
    together = { claimId: claim_id, queue, ids: [], ranEach: [] }
    alike.set(key, together)
  }
  together.ids.push(id)
  together.ranEach.push(ran_ms ?? 'NULL')
}

/** The lists are SQL arrays as text, which are read faster than those of JSON. */
function togetherJson({ claimId, queue, ids, ranEach }: Together): string {
  const name = JSON.stringify(queue)
  return `{"claim_id":"${claimId}","queue":${name},"ids":"{${ids.join()}}","ran_each":"{${ranEach.join()}}"}`
}

/** The common case, in which nothing needs escaping; a result is JSON already. */
function completedJson({ id, claim_id, ran_ms, result }: Extract<Outcome, { verb: 'complete' }>): string {
  const ran = ran_ms === undefined ? '' : `,"ran_ms":${ran_ms}`
  return `{"id":"${id}","claim_id":"${claim_id}"${ran}${result === undefined ? '' : `,"result":${result}`}}`
}

function endedJson({ verb: _verb, attempt: _attempt, queue: _queue, ...ended }: Outcome): string {
  return JSON.stringify(ended)
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id.length - b.id.length || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}
