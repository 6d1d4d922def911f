-- The handlers of these jobs ended well.
-- A pair of id and claim_id that no longer names a running job changes nothing.
--
-- p_jobs: [{"id", "claim_id", "result"?, "ran_ms"?}]; `ran_ms` is how long the handler ran. Jobs of one claim and one
--   queue that have no result can stand together, which costs a fifth less: {"claim_id", "queue", "ids", "ran_each"?}.
-- Returns: the ids that were completed; whoever sent more has lost the rest.
-- Locks: the rows in running, in id order; dedupe keys last.
-- Why no lock before the delete: one plain delete follows a row that the heartbeat is just updating.
create or replace function rowlock.complete(p_jobs jsonb) returns bigint[]
language plpgsql volatile security definer
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
  v_now timestamptz := rowlock.now();
  v_ids bigint[];
  v_queues text[];
  v_keys text[];
  v_holders bigint[];
  v_large bigint[];
begin
  with given as (
    select g.id, g.claim_id, g.result, g.ran_ms, null::text as queue, null::integer as retention_days
      from jsonb_to_recordset(p_jobs) as g (id bigint, claim_id uuid, result jsonb, ran_ms double precision)
     where g.id is not null
    union all
    -- How long a queue keeps its history is looked up once for all of them.
    select e.id, g.claim_id, null, e.ran_ms, g.queue, coalesce(q.retention_days, 7)
      from jsonb_to_recordset(p_jobs)
             as g (claim_id uuid, queue text, ids bigint[], ran_each double precision[])
      left join rowlock.queue q on q.name = g.queue
     cross join lateral unnest(g.ids, g.ran_each) as e (id, ran_ms)
     order by id
  ), gone as (
    delete from rowlock.running r
     using given g
     where r.id = g.id and r.claim_id = g.claim_id and (g.queue is null or r.queue = g.queue)
    returning r.*, g.result, g.ran_ms,
              coalesce(g.retention_days, (select q.retention_days from rowlock.queue q where q.name = r.queue), 7)
                as retention_days
  ), kept as (
    insert into rowlock.finished (
      id, finished_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout, attempt,
      priority, failures, max_attempts, retention_days, state, queue, kind, tenant_id, dedupe_key, idempotency_key,
      backoff, metadata, input, result)
    select g.id, v_now, g.claimed_at,
           coalesce(g.started_at, greatest(g.claimed_at, v_now - least(abs(g.ran_ms), 1e10) * interval '1 ms')),
           g.available_at, g.enqueued_at, g.retried_from, g.worker_id, g.timeout, g.attempt, g.priority, g.failures,
           g.max_attempts, g.retention_days, 'done', g.queue, g.kind, g.tenant_id, g.dedupe_key,
           g.idempotency_key, g.backoff, g.metadata, g.input, g.result
      from gone g
     where g.retention_days > 0
  )
  select array_agg(g.id),
         array_agg(g.queue) filter (where g.dedupe_key is not null),
         array_agg(g.dedupe_key) filter (where g.dedupe_key is not null),
         array_agg(g.id) filter (where g.dedupe_key is not null),
         array_agg(g.id) filter (where g.input is null and g.retention_days = 0)
    into v_ids, v_queues, v_keys, v_holders, v_large
    from gone g;
  perform rowlock.give_up(v_ids, v_queues, v_keys, v_holders, v_large);
  return coalesce(v_ids, '{}');
end
$rowlock$;
