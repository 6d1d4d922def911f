-- The handlers of these jobs ended well.
-- A pair of id and claim_id that no longer names a running job changes nothing.
--
-- p_jobs: [{"id", "claim_id", "result"?, "ran_ms"?}]; `ran_ms` is how long the handler ran. Jobs of one claim and one
--   queue can stand together, which costs a fifth less: {"claim_id", "queue"?, "ids", "ran_each"?, "results"?}.
-- Returns: the ids that were completed; whoever sent more has lost the rest.
-- Locks: the rows in running, in id order; dedupe keys last.
-- Why no lock before the delete: one plain delete follows a row that the heartbeat is just updating.
-- Why it joins nothing, and asks for its pairs by `not … not in`: a join that was planned while few jobs ran would read
-- all that run for each job that ends; this is an index scan by the ids and a lookup by hash, whatever was known then.
create or replace function rowlock.complete(p_jobs jsonb) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = on
set enable_mergejoin = off
set enable_indexscan = on
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_given_ids bigint[];
  v_claims uuid[];
  v_results jsonb[];
  v_ran double precision[];
  v_of text[];
  v_days smallint[];
  v_told boolean;
  v_ids bigint[];
  v_queues text[];
  v_keys text[];
  v_holders bigint[];
  v_large bigint[];
begin
  with given as (
    select g.id, g.claim_id, g.result, g.ran_ms, null::text as queue, null::smallint as retention_days
      from jsonb_to_recordset(p_jobs) as g (id bigint, claim_id uuid, result jsonb, ran_ms double precision)
     where g.id is not null and g.claim_id is not null
    union all
    -- How long a queue keeps its history is looked up once for all of them.
    select e.id, g.claim_id, e.result, e.ran_ms, g.queue, coalesce(q.retention_days, 7::smallint)
      from jsonb_to_recordset(p_jobs)
             as g (claim_id uuid, queue text, ids bigint[], ran_each double precision[], results jsonb)
      left join rowlock.queue q on q.name = g.queue
     cross join lateral rows from (
             unnest(g.ids), unnest(g.ran_each), jsonb_array_elements(g.results)) as e (id, ran_ms, result)
     where e.id is not null and g.claim_id is not null
  )
  select array_agg(g.id), array_agg(g.claim_id), array_agg(g.result), array_agg(g.ran_ms), array_agg(g.queue),
         array_agg(g.retention_days)
    into v_given_ids, v_claims, v_results, v_ran, v_of, v_days
    from given g;
  if (select count(distinct i.id) < count(*) from unnest(v_given_ids) as i (id)) then
    select array_agg(g.id), array_agg(g.claim_id), array_agg(g.result), array_agg(g.ran_ms), array_agg(g.queue),
           array_agg(g.retention_days)
      into v_given_ids, v_claims, v_results, v_ran, v_of, v_days
      from (select distinct on (g.id, g.claim_id) g.*
              from unnest(v_given_ids, v_claims, v_results, v_ran, v_of, v_days)
                     as g (id, claim_id, result, ran_ms, queue, retention_days)
             order by g.id, g.claim_id, g.result) as g;
  end if;

  -- Were all queues told? Else each job's own is looked up, once.
  v_told := array_position(v_of, null) is null;

  with gone as (
    delete from rowlock.running r
     where r.id = any (v_given_ids)
       and not ((r.id, r.claim_id) not in (
             select p.id, p.claim_id from unnest(v_given_ids, v_claims) as p (id, claim_id)))
    returning r.*,
              case when not v_told
                   then coalesce((select q.retention_days from rowlock.queue q where q.name = r.queue), 7::smallint)
               end as own_days
  ), kept as (
    insert into rowlock.finished (
      id, finished_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout, attempt,
      priority, failures, max_attempts, retention_days, state, queue, kind, tenant_id, dedupe_key, idempotency_key,
      backoff, metadata, input, result)
    select g.id, v_now, g.claimed_at,
           coalesce(g.started_at, greatest(g.claimed_at, v_now - least(abs(t.ran_ms), 1e10) * interval '1 ms')),
           g.available_at, g.enqueued_at, g.retried_from, g.worker_id, g.timeout, g.attempt, g.priority, g.failures,
           g.max_attempts, d.retention_days, 'done', g.queue, g.kind, g.tenant_id, g.dedupe_key,
           g.idempotency_key, g.backoff, g.metadata, g.input, t.result
      from gone g
      join unnest(v_given_ids, v_claims, v_results, v_ran, v_of, v_days)
             as t (id, claim_id, result, ran_ms, queue, retention_days)
        on t.id = g.id and t.claim_id = g.claim_id
     cross join lateral (
           select case when t.queue = g.queue then t.retention_days
                       else coalesce(g.own_days, (
                         select q.retention_days from rowlock.queue q where q.name = g.queue), 7::smallint)
                   end as retention_days) as d
     where d.retention_days > 0
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
