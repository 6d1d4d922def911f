-- The jobs that a filter finds, newest first, as the view `job` has them: for psql.
--
-- p_filter: see filter_fault. p_before: only jobs with a smaller id.
-- Returns: at most p_limit rows. One call looks at 50,000 jobs at most; where more are behind, a notice says from which
--   id to go on. Programs read jobs_page, whose answer has it. Jobs that wait in queues which the filter names are
--   found at once where there are up to 20,000 of them.
-- Locks: none. Errors: RL001.
create or replace function rowlock.jobs(
  p_filter jsonb default '{}', p_limit integer default 50, p_before bigint default null)
returns table (
  id bigint, state text, queue text, kind text, priority smallint, attempt integer, failures smallint,
  max_attempts smallint, available_at timestamptz, enqueued_at timestamptz, claimed_at timestamptz,
  started_at timestamptz, finished_at timestamptz, expires_at timestamptz, timeout interval, worker_id uuid,
  tenant_id text, dedupe_key text, idempotency_key text, cause text, error jsonb, actor text, reason text,
  backoff jsonb, metadata jsonb, input jsonb, result jsonb, retried_from bigint, losses smallint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
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
begin
  perform rowlock.require_list(p_filter, p_limit, p_before);
  select s.ids, s.searched_to
    into v_ids, v_next
    from rowlock.search(p_filter, null, p_before, null, true, p_limit, 50000) as s;
  return query
    select j.*
      from unnest(v_ids) with ordinality as o (id, place)
      join rowlock.job j on j.id = o.id
     order by o.place;
  if cardinality(v_ids) < p_limit and v_next is not null then
    raise notice 'looked at 50,000 jobs; older ones may fit: go on with p_before => %', v_next;
  end if;
end
$rowlock$;
