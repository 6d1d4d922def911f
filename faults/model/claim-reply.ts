// What a claim answers, as it comes from SQL: each job as a row, also those that were answered together.

/** A job: id, queue, kind, priority, attempt, failures, input, is it elsewhere, available_at, enqueued_at, … losses. */
// biome-ignore lint/suspicious/noExplicitAny: each field has its own type, and most are not looked at
export type ClaimRow = readonly any[]

interface Alike {
  readonly queue: string
  readonly kind: string
  readonly priority: number
  readonly attempt: number
  readonly failures: number
  readonly ids: string
  readonly available_at: string
  readonly enqueued_at: string
  readonly inputs: readonly unknown[]
}

/** The jobs of a claim's answer. */
export interface ClaimedRows {
  readonly jobs: readonly ClaimRow[]
  readonly alike: readonly Alike[]
}

/** The rows of all jobs, in no order; what only few jobs have is null in those that have nothing of it. */
export function rowsOf(reply: ClaimedRows): ClaimRow[] {
  const list = (text: string): (number | null)[] =>
    JSON.parse(`[${text.slice(1, -1).replaceAll('NULL', 'null')}]`)
  const rows = [...reply.jobs]
  for (const { queue, kind, priority, attempt, failures, inputs, ...lists } of reply.alike) {
    const [availableAt, enqueuedAt] = [list(lists.available_at), list(lists.enqueued_at)]
    // Ids as text: a number of JSON is not exact above 2^53.
    for (const [n, id] of lists.ids.slice(1, -1).split(',').entries()) {
      const few = [null, null, null, null, null, null, null, 0, null]
      rows.push([
        id,
        queue,
        kind,
        priority,
        attempt,
        failures,
        inputs[n],
        false,
        availableAt[n],
        enqueuedAt[n],
        ...few,
      ])
    }
  }
  return rows
}
