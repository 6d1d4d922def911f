// `rowlock`: everything that producers and workers need.

export type { Bulk, BulkOptions, BulkRow, BulkRunOptions } from './engine/bulk.ts'
export type { ChangePage, ChangeRow } from './engine/changes.ts'
export type { DatabaseOptions } from './engine/database.ts'
export type { DeadLetterGroup } from './engine/dead-letters.ts'
export type { Enqueued, Requests } from './engine/enqueue.ts'
export type { AttemptRow, JobRow } from './engine/find-job.ts'
export type { JobCount, JobPage, ListedJob } from './engine/find-jobs.ts'
export type { PageOptions } from './engine/look.ts'
export type { Looks } from './engine/looks.ts'
export {
  type Answer,
  type AnswerDetail,
  answersOf,
  type Change,
  type Ids,
  type Refusal,
} from './engine/many.ts'
export type { MigrateReport } from './engine/migrate.ts'
export type { Operator } from './engine/operator.ts'
export type { QueueSettings, Rate } from './engine/queue-settings.ts'
export type { QueueRow, QueuesOptions } from './engine/queues.ts'
export { RELEASE } from './engine/release.ts'
export type { PooledClient, PoolLike, Queryable } from './engine/seam.ts'
export type { StoryLine } from './engine/story.ts'
export type {
  EnqueueContext,
  EnqueueMiddleware,
  Verbs,
} from './engine/verbs.ts'
export type { Reason, ReasonCode } from './engine/why.ts'
export type { WorkerQueue, WorkerRow } from './engine/workers.ts'
export type { Backoff } from './ground/backoff.ts'
export { exponential, fixed, list } from './ground/backoff.ts'
export type { Cancel, Decision, Snooze } from './ground/decisions.ts'
export { cancel, PermanentError, permanent, snooze } from './ground/decisions.ts'
export type { Duration } from './ground/duration.ts'
export type { RowlockErrorCode } from './ground/errors.ts'
export { isRowlockError, RowlockError } from './ground/errors.ts'
export type { ChangeFilter, FilterState, JobFilter } from './ground/filter.ts'
export type {
  AnyJob,
  AnyRequest,
  EnqueueOptions,
  InputOf,
  JobDefinition,
  JobOptions,
  JobRequest,
  OutputOf,
  ResultOf,
  RetryOptions,
} from './ground/job.ts'
export { defineJob } from './ground/job.ts'
export { LIMITS } from './ground/limits.ts'
export type { BulkVerb, State } from './ground/states.ts'
export type { Rowlock, RowlockOptions } from './rowlock.ts'
export { createRowlock } from './rowlock.ts'
export type { AbortCause } from './worker/aborted.ts'
export { isAborted, JobAborted } from './worker/aborted.ts'
export type { StopOptions, WorkerEvents, WorkerStatus } from './worker/events.ts'
export type {
  Handler,
  HandlerContext,
  HandlerOptions,
  RunningJob,
  TransactionContext,
} from './worker/handler.ts'
export { handle, handleInTransaction } from './worker/handler.ts'
export type { Logger } from './worker/log.ts'
export type { HandlerMiddleware } from './worker/middleware.ts'
export type { QueueOptions, WorkerOptions } from './worker/options.ts'
export type { Worker } from './worker/worker.ts'
