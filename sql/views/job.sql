-- Every job in every phase, in one consistent look: `select * from rowlock.job where id = 42` tells the story.
create or replace view rowlock.job as
select w.id, case when w.cause is null then 'queued' else 'retryable' end as state, w.queue, w.kind, w.priority,
       w.attempt, w.failures, coalesce(w.max_attempts, 10::smallint) as max_attempts, w.available_at, w.enqueued_at,
       null::timestamptz as claimed_at, null::timestamptz as started_at, null::timestamptz as finished_at,
       w.expires_at, coalesce(w.timeout, interval '15 minutes') as timeout, null::uuid as worker_id, w.tenant_id,
       w.dedupe_key, w.idempotency_key, w.cause, null::jsonb as error, null::text as actor, null::text as reason,
       w.backoff, w.metadata,
       coalesce(w.input, (select p.body from rowlock.payload p where p.job_id = w.id)) as input,
       null::jsonb as result, w.retried_from, w.losses
  from rowlock.waiting w
union all
select r.id, 'running', r.queue, r.kind, r.priority,
       r.attempt, r.failures, coalesce(r.max_attempts, 10::smallint), r.available_at, r.enqueued_at,
       r.claimed_at, r.started_at, null,
       r.expires_at, coalesce(r.timeout, interval '15 minutes'), r.worker_id, r.tenant_id,
       r.dedupe_key, r.idempotency_key, null, null, null, null,
       r.backoff, r.metadata,
       coalesce(r.input, (select p.body from rowlock.payload p where p.job_id = r.id)),
       null, r.retried_from, r.losses
  from rowlock.running r
union all
select d.id, 'dead_letter', d.queue, d.kind, d.priority,
       d.attempt, d.failures, coalesce(d.max_attempts, 10::smallint), d.available_at, d.enqueued_at,
       d.claimed_at, d.started_at, d.dead_at,
       null, coalesce(d.timeout, interval '15 minutes'), d.worker_id, d.tenant_id,
       d.dedupe_key, d.idempotency_key, d.cause, d.error, null, null,
       d.backoff, d.metadata,
       coalesce(d.input, (select p.body from rowlock.payload p where p.job_id = d.id)),
       null, d.retried_from, d.losses
  from rowlock.dead_letter d
union all
select f.id, f.state, f.queue, f.kind, f.priority,
       f.attempt, f.failures, coalesce(f.max_attempts, 10::smallint), f.available_at, f.enqueued_at,
       f.claimed_at, f.started_at, f.finished_at,
       null, coalesce(f.timeout, interval '15 minutes'), f.worker_id, f.tenant_id,
       f.dedupe_key, f.idempotency_key, f.cause, null, f.actor, f.reason,
       f.backoff, f.metadata,
       coalesce(f.input, (select p.body from rowlock.payload p where p.job_id = f.id)),
       f.result, f.retried_from, null
  from rowlock.finished f;
