// The keys of what `--json` prints, in the order of the API: what comes as jsonb has an order of its own.

import type { BulkRow, ChangeRow, JobRow } from '../index.ts'

/** As the interfaces have them; a test holds them to it. */
export const KEYS = {
  JobRow: [
    ...['id', 'state', 'queue', 'kind', 'priority', 'attempt', 'failures', 'maxAttempts', 'timeoutMs'],
    ...[
      'availableAt',
      'enqueuedAt',
      'claimedAt',
      'startedAt',
      'finishedAt',
      'expiresAt',
      'workerId',
      'tenantId',
    ],
    ...[
      'dedupeKey',
      'idempotencyKey',
      'cause',
      'error',
      'losses',
      'backoff',
      'actor',
      'reason',
      'input',
      'result',
    ],
    ...['metadata', 'retriedFrom', 'attempts'],
  ],
  ChangeRow: ['id', 'at', 'verb', 'jobId', 'queue', 'actor', 'reason', 'detail'],
  BulkRow: [
    ...[
      'id',
      'verb',
      'filter',
      'args',
      'actor',
      'reason',
      'startedAt',
      'beatAt',
      'endedAt',
      'outcome',
      'uptoId',
    ],
    ...['afterId', 'matched', 'about', 'changed', 'refused', 'again'],
  ],
} as const satisfies {
  readonly JobRow: readonly (keyof JobRow)[]
  readonly ChangeRow: readonly (keyof ChangeRow)[]
  readonly BulkRow: readonly (keyof BulkRow)[]
}

/** The same object with its keys in order; what is not known stands at its end. */
export function inOrder(row: object, of: keyof typeof KEYS): object {
  const first = KEYS[of].filter((key) => key in row).map((key) => [key, (row as never)[key]])
  return { ...Object.fromEntries(first), ...row }
}
