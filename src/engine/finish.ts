// Outcomes of jobs, as a worker reports them: many in one statement.

import type { Database } from './database.ts'

interface Ended {
  readonly id: string
  readonly claim_id: string
  /** Which attempt ends; asked for when an answer was lost, not sent. */
  readonly attempt: number
  /** For the worker's own figures; not sent. */
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

/** Rows of one table are locked in id order, so each verb's jobs are sorted. A result is JSON already. */
export function outcomesJson(outcomes: readonly Outcome[]): string {
  const byVerb = new Map<string, string[]>()
  for (const { verb, attempt: _attempt, queue: _queue, ...rest } of [...outcomes].sort(byId)) {
    const { result, ...ended } = rest as { result?: string }
    let text = JSON.stringify(ended)
    if (result !== undefined) text = `${text.slice(0, -1)},"result":${result}}`
    const known = byVerb.get(verb)
    if (known) known.push(text)
    else byVerb.set(verb, [text])
  }
  return `{${[...byVerb].map(([verb, jobs]) => `"${verb}":[${jobs.join(',')}]`).join(',')}}`
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id.length - b.id.length || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}
