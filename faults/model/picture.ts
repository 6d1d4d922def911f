// Everything that can be seen of a queue, once from the database and once from the model, in the same form.

import type { ModelDatabase } from './queue.ts'

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`
const list = (columns: readonly string[], from: string) =>
  `(select coalesce(json_agg(json_build_array(${columns.join(', ')})), '[]') from ${from})`

const PAYLOAD = ['job_id::text', 'octet_length(body::text)']
const PAYLOADS = '(select * from rowlock.payload order by job_id) as p'

/** One statement, so that all of it is of one instant. */
export const PICTURE = `select json_build_object(
  'jobs', ${list(
    [
      'id::text',
      'state',
      'queue',
      'kind',
      'priority',
      'attempt',
      'failures',
      'losses',
      'max_attempts',
      ms('available_at'),
      ms('enqueued_at'),
      ms('claimed_at'),
      ms('started_at'),
      ms('finished_at'),
      ms('expires_at'),
      'worker_id',
      'dedupe_key',
      'cause',
      'actor',
      'reason',
      'retried_from::text',
      'octet_length(input::text)',
      'result',
    ],
    '(select * from rowlock.job order by id) as j',
  )},
  'claims', ${list(['id::text', 'claim_id', 'in_transaction'], '(select * from rowlock.running order by id) as r')},
  'attempts', ${list(
    [
      'job_id::text',
      'attempt',
      'outcome',
      'cause',
      'worker_id',
      ms('claimed_at'),
      ms('started_at'),
      ms('ended_at'),
    ],
    '(select * from rowlock.attempt order by job_id, attempt) as a',
  )},
  'keys', ${list(['queue', 'key', 'job_id::text', 'until'], '(select * from rowlock.dedupe order by queue, key) as d')},
  'asked', ${list(['job_id::text', 'actor', 'reason'], '(select * from rowlock.cancel_request order by job_id) as c')},
  'payloads', ${list(PAYLOAD, PAYLOADS)},
  'queues', ${list(
    ['name', ms('paused_at'), 'retention_days'],
    '(select * from rowlock.queue order by name) as q',
  )},
  'workers', ${list(
    ['id', ms('started_at'), ms('beat_at'), ms('expires_at')],
    '(select * from rowlock.worker order by id) as w',
  )},
  'audit', ${list(['verb', 'job_id::text', 'queue', 'actor', 'reason'], '(select * from rowlock.audit order by id) a')}
) as picture`

/** The same of the model. */
export function pictureOf(model: ModelDatabase): Record<string, unknown[]> {
  const byId = (a: { id: string }, b: { id: string }) => Number(a.id) - Number(b.id)
  const jobs = [...model.jobs.values()].sort(byId)
  return {
    jobs: jobs.map((job) => [
      job.id,
      job.state,
      job.queue,
      job.kind,
      job.priority,
      job.attempt,
      job.failures,
      job.losses,
      job.maxAttempts ?? 10,
      job.availableAt,
      job.enqueuedAt,
      job.claimedAt,
      job.startedAt,
      job.endedAt,
      job.state === 'dead_letter' ? null : job.expiresAt,
      job.workerId,
      job.dedupeKey,
      job.cause,
      job.actor,
      job.reason,
      job.retriedFrom,
      job.inputBytes,
      job.result,
    ]),
    claims: jobs
      .filter(({ state }) => state === 'running')
      .map(({ id, claimId, inTransaction }) => [id, claimId, inTransaction]),
    attempts: [...model.attempts]
      .sort((a, b) => Number(a.jobId) - Number(b.jobId) || a.attempt - b.attempt)
      .map((one) => [
        one.jobId,
        one.attempt,
        one.outcome,
        one.cause,
        one.workerId,
        one.claimedAt,
        one.startedAt,
        one.endedAt,
      ]),
    keys: [...model.keys].sort().map(([key, id]) => [...key.split(' '), id, null]),
    asked: [...model.asked]
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([id, { actor, reason }]) => [id, actor, reason]),
    payloads: [...model.payloads]
      .sort((a, b) => Number(a) - Number(b))
      .map((id) => [id, model.jobs.get(id)?.inputBytes ?? 0]),
    queues: [...model.queues].sort().map(([name, one]) => [name, one.pausedAt, one.retentionDays]),
    workers: [...model.workers.values()]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((one) => [one.id, one.startedAt, one.beatAt, one.expiresAt]),
    audit: model.audit,
  }
}
