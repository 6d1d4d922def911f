-- A page of the jobs that a filter finds, newest first, and where the next page starts.
--
-- p_filter: see filter_fault. p_before: the id that ended the page before; null: from the newest on.
-- Returns: {"jobs": [{the columns of the view `job` without input and result} …], "next": "id" | null}. Null: nothing
--   older fits. A page may be short, or even empty, with a `next`: one call looks at 50,000 jobs at most.
-- A page is one snapshot. Ids are the order, and a job keeps its id in every phase: one that moves between two pages
--   is on one of them at most, and on none only if it did not fit when its turn came.
-- Locks: none. Errors: RL001.
create or replace function rowlock.jobs_page(
  p_filter jsonb default '{}', p_limit integer default 50, p_before bigint default null) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set enable_indexscan = on
set max_parallel_workers_per_gather = 0
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_ids bigint[];
  v_next bigint;
  v_jobs jsonb;
begin
  perform rowlock.require_list(p_filter, p_limit, p_before);
  -- One more than the page holds tells whether anything is behind it.
  select s.ids, s.searched_to
    into v_ids, v_next
    from rowlock.search(p_filter, null, p_before, null, true, p_limit + 1, 50000) as s;
  if cardinality(v_ids) > p_limit then
    v_ids := v_ids [: p_limit];
    v_next := v_ids [p_limit];
  end if;

  select jsonb_agg(to_jsonb(l) - 'place' order by l.place)
    into v_jobs
    from (select o.place, j.id::text as id, j.state, j.queue, j.kind, j.priority, j.attempt, j.failures,
                 j.max_attempts, rowlock.length_ms(j.timeout) as timeout_ms, j.available_at, j.enqueued_at,
                 j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.worker_id, j.tenant_id, j.dedupe_key,
                 j.idempotency_key, j.cause, j.error, j.actor, j.reason, j.backoff, j.metadata,
                 j.retried_from::text as retried_from, j.losses
            from unnest(v_ids) with ordinality as o (id, place)
            join rowlock.job j on j.id = o.id) as l;
  return jsonb_build_object('jobs', coalesce(v_jobs, '[]'), 'next', v_next::text);
end
$rowlock$;
