-- End attempts that did not end their jobs well, and say where each job goes. Internal: fail, snooze, hand_back and
-- reap are this with their own words.
--
-- p_endings: [{"id", "claim_id", "outcome", "cause"?, "error"?, "failed"?, "lost"?, "permanent"?, "cancelled"?,
--   "reason"?, "after_ms"?, "ran_ms"?}], in id order. `failed` counts a failure, `lost` a loss; `after_ms` is the
--   delay, absent: after a failure the stored backoff, else `available_at` is kept.
-- Returns: [{"id", "to", "available_at"}] for those that were still held under their claim.
-- A request to cancel wins over everything but success.
-- Locks: the rows in running, in id order; dedupe keys last.
create or replace function rowlock.settle(p_endings jsonb, p_now timestamptz) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_indexscan = on
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_moved jsonb;
  v_ids bigint[];
  v_queues text[];
  v_keys text[];
  v_holders bigint[];
  v_large bigint[];
  v_woken text[];
  v_due timestamptz;
begin
  with given as (
    select g.*
      from jsonb_to_recordset(p_endings) as g (
             id bigint, claim_id uuid, outcome text, cause text, error jsonb, failed boolean, lost boolean,
             permanent boolean, cancelled boolean, reason text, after_ms double precision, ran_ms double precision)
  ), gone as (
    delete from rowlock.running r
     using given g
     where r.id = g.id and r.claim_id = g.claim_id
    returning r.*, g.outcome, g.cause, g.error, coalesce(g.failed, false) as failed, coalesce(g.lost, false) as lost,
              coalesce(g.permanent, false) as permanent, coalesce(g.cancelled, false) as cancelled, g.reason,
              g.after_ms, g.ran_ms
  ), counted as (
    select g.*, coalesce(q.retention_days, 7) as retention_days,
           least(g.failures + g.failed::integer, 32767)::smallint as failures_now,
           -- A loss is forgotten when the job proves that it can end without taking its worker down.
           case
             when g.lost then least(g.losses + 1, 32767)
             when g.outcome = 'handed_back' then g.losses
             else 0
           end::smallint as losses_now,
           -- Whoever says how long it ran has started; who says nothing may never have.
           coalesce(g.started_at, case when g.ran_ms is not null then
             greatest(g.claimed_at, p_now - least(abs(g.ran_ms), 1e10) * interval '1 ms') end) as began_at,
           c.job_id is not null as asked, c.actor as asked_by, c.reason as asked_why
      from gone g
      left join rowlock.queue q on q.name = g.queue
      left join rowlock.cancel_request c on c.job_id = g.id
  ), fate as (
    select c.*,
           case
             when c.asked or c.cancelled then 'cancelled'
             when c.permanent then 'failed'
             when c.failed and c.failures_now >= coalesce(c.max_attempts, 10) then 'dead_letter'
             when c.failed then 'retryable'
             else 'queued'
           end as state,
           case
             -- Ten years at the most: an instant beyond the calendar would fail the whole batch.
             when c.after_ms is not null then p_now + least(greatest(c.after_ms, 0), 315360000000) * interval '1 ms'
             when c.failed then p_now + rowlock.backoff_ms(c.backoff, c.failures_now, random()) * interval '1 ms'
             else c.available_at
           end as due_at
      from counted c
  ), noted as (
    insert into rowlock.attempt (
      job_id, ended_at, claimed_at, started_at, worker_id, attempt, retention_days, outcome, cause, error)
    select f.id, p_now, f.claimed_at, f.began_at, f.worker_id, f.attempt, greatest(f.retention_days, 1),
           case when f.state = 'cancelled' then 'cancelled' else f.outcome end, f.cause, f.error
      from fate f
  ), put_back as (
    insert into rowlock.waiting (
      id, available_at, enqueued_at, expires_at, retried_from, timeout, attempt, priority, failures, losses,
      max_attempts, queue, kind, tenant_id, dedupe_key, idempotency_key, cause, backoff, metadata, input)
    select f.id, f.due_at, f.enqueued_at, f.expires_at, f.retried_from, f.timeout, f.attempt, f.priority,
           f.failures_now, f.losses_now, f.max_attempts, f.queue, f.kind, f.tenant_id, f.dedupe_key,
           f.idempotency_key, case when f.state = 'retryable' then coalesce(f.cause, 'unknown') end, f.backoff,
           f.metadata, f.input
      from fate f
     where f.state in ('queued', 'retryable')
  ), parked as (
    insert into rowlock.dead_letter (
      id, dead_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout, attempt,
      priority, failures, losses, max_attempts, queue, kind, tenant_id, dedupe_key, idempotency_key, cause, error,
      backoff, metadata, input)
    select f.id, p_now, f.claimed_at, f.began_at, f.available_at, f.enqueued_at, f.retried_from, f.worker_id,
           f.timeout, f.attempt, f.priority, f.failures_now, f.losses_now, f.max_attempts, f.queue, f.kind,
           f.tenant_id, f.dedupe_key, f.idempotency_key, coalesce(f.cause, 'unknown'), f.error, f.backoff, f.metadata,
           f.input
      from fate f
     where f.state = 'dead_letter'
  ), kept as (
    insert into rowlock.finished (
      id, finished_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout, attempt,
      priority, failures, max_attempts, retention_days, state, queue, kind, tenant_id, dedupe_key, idempotency_key,
      cause, actor, reason, backoff, metadata, input)
    select f.id, p_now, f.claimed_at, f.began_at, f.available_at, f.enqueued_at, f.retried_from, f.worker_id,
           f.timeout, f.attempt, f.priority, f.failures_now, f.max_attempts, f.retention_days, f.state, f.queue,
           f.kind, f.tenant_id, f.dedupe_key, f.idempotency_key, f.cause, f.asked_by,
           coalesce(f.asked_why, f.reason), f.backoff, f.metadata, f.input
      from fate f
     where f.state in ('failed', 'cancelled') and f.retention_days > 0
  )
  select jsonb_agg(jsonb_build_object('id', f.id::text, 'to', f.state, 'available_at', rowlock.ms(f.due_at))),
         -- Only requests that were heeded are settled; one that came since is left to the sweep.
         array_agg(f.id) filter (where f.asked),
         array_agg(f.queue)
           filter (where f.state in ('failed', 'cancelled', 'dead_letter') and f.dedupe_key is not null),
         array_agg(f.dedupe_key)
           filter (where f.state in ('failed', 'cancelled', 'dead_letter') and f.dedupe_key is not null),
         array_agg(f.id)
           filter (where f.state in ('failed', 'cancelled', 'dead_letter') and f.dedupe_key is not null),
         array_agg(f.id) filter (where f.state in ('failed', 'cancelled') and f.input is null and f.retention_days = 0),
         array_agg(distinct f.queue) filter (where f.state in ('queued', 'retryable')),
         min(f.due_at) filter (where f.state in ('queued', 'retryable'))
    into v_moved, v_ids, v_queues, v_keys, v_holders, v_large, v_woken, v_due
    from fate f;
  if v_ids is not null or v_keys is not null or v_large is not null then
    perform rowlock.give_up(v_ids, v_queues, v_keys, v_holders, v_large);
  end if;
  if v_woken is not null then
    perform rowlock.wake(v_woken, v_due);
  end if;
  return coalesce(v_moved, '[]');
end
$rowlock$;
