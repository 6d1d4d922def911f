-- Move waiting jobs, whose rows the caller has locked, to history as cancelled. Internal: cancel, expire and claim
-- call it.
-- Locks: nothing more; gives up dedupe keys last, naming their jobs.
create or replace function rowlock.end_waiting(p_tids tid[], p_actor text, p_reason text, p_now timestamptz)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_tidscan = on
set jit = off
as $rowlock$
declare
  v_ids bigint[];
  v_queues text[];
  v_keys text[];
  v_holders bigint[];
  v_large bigint[];
begin
  perform rowlock.ensure_days(p_now);
  with gone as (
    delete from rowlock.waiting w where w.ctid = any (p_tids) returning w.*
  ), kept as (
    insert into rowlock.finished (
      id, finished_at, available_at, enqueued_at, retried_from, timeout, attempt, priority, failures, max_attempts,
      retention_days, state, queue, kind, tenant_id, dedupe_key, idempotency_key, cause, actor, reason, backoff,
      metadata, input)
    select g.id, p_now, g.available_at, g.enqueued_at, g.retried_from, g.timeout, g.attempt, g.priority, g.failures,
           g.max_attempts, coalesce(q.retention_days, 7), 'cancelled', g.queue, g.kind, g.tenant_id, g.dedupe_key,
           g.idempotency_key, g.cause, p_actor, p_reason, g.backoff, g.metadata, g.input
      from gone g
      left join rowlock.queue q on q.name = g.queue
     where coalesce(q.retention_days, 7) > 0
  )
  select array_agg(g.id),
         array_agg(g.queue) filter (where g.dedupe_key is not null),
         array_agg(g.dedupe_key) filter (where g.dedupe_key is not null),
         array_agg(g.id) filter (where g.dedupe_key is not null),
         array_agg(g.id) filter (where g.input is null
           and exists (select from rowlock.queue q where q.name = g.queue and q.retention_days = 0))
    into v_ids, v_queues, v_keys, v_holders, v_large
    from gone g;
  perform rowlock.give_up(v_ids, v_queues, v_keys, v_holders, v_large);
  return coalesce(v_ids, '{}');
end
$rowlock$;
