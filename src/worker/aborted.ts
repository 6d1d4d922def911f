// Why a handler's signal was aborted.

/** Why: its time was over, somebody cancelled the job, the worker lost its lease, or the worker shuts down. */
export type AbortCause = 'timeout' | 'cancelled' | 'lease_lost' | 'shutdown'

const MESSAGES: Readonly<Record<AbortCause, string>> = {
  timeout: 'the job took longer than its timeout',
  cancelled: 'the job was cancelled',
  lease_lost: 'the worker could not prove its lease: another worker may run this job',
  shutdown: 'the worker shuts down',
}

/**
 * The reason of an aborted signal; `code` tells the causes apart.
 *
 * @example
 * if (isAborted(signal.reason, 'shutdown')) await saveProgress()
 */
export class JobAborted extends Error {
  override readonly name = 'JobAborted'
  readonly code: AbortCause

  constructor(code: AbortCause, detail?: string) {
    super(detail ? `${MESSAGES[code]}: ${detail}` : MESSAGES[code])
    this.code = code
  }
}

/** Is this the reason of an abort by Rowlock, and, when a cause is given, for that cause? */
export function isAborted(reason: unknown, cause?: AbortCause): reason is JobAborted {
  if (typeof reason !== 'object' || reason === null || (reason as { name?: unknown }).name !== 'JobAborted')
    return false
  return cause === undefined || (reason as { code?: unknown }).code === cause
}
