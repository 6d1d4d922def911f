-- Put many jobs in, all or none, and answer in order.
--
-- p_jobs: [{"kind", "input", "queue"?, "priority"?, "delay"? | "available_at"?, "expires_at"? | "expires_in"?,
--   "tenant_id"?, "dedupe_key"?, "idempotency_key"?, "max_attempts"?, "backoff"?, "timeout"?, "metadata"?}], at most
--   1,000. Lengths of time are intervals: '30s', '10 minutes'.
-- Returns: as store.
-- Transaction: may run in the caller's. Locks: its dedupe keys.
-- Errors: RL001, RL003, RL018, each with the path and the index.
create or replace function rowlock.enqueue_many(p_jobs jsonb) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_job jsonb;
  v_n bigint;
  v_fault jsonb;
  v_keyed boolean;
  v_large boolean;
begin
  if p_jobs is null or jsonb_typeof(p_jobs) <> 'array' then
    perform rowlock.refuse('RL001', 'jobs must be an array of objects', '{"path": "jobs"}');
  elsif jsonb_array_length(p_jobs) > 1000 then
    perform rowlock.refuse('RL001', format('at most 1,000 jobs a call, not %s: make several calls in one transaction',
      jsonb_array_length(p_jobs)), '{"path": "jobs"}');
  end if;
  for v_job, v_n in select e.job, e.n - 1 from jsonb_array_elements(p_jobs) with ordinality as e (job, n) loop
    v_fault := rowlock.job_fault(v_job);
    if v_fault is not null then
      perform rowlock.refuse(v_fault ->> 'sqlstate', v_fault ->> 'message',
        jsonb_build_object('path', v_fault -> 'path', 'index', v_n));
    end if;
  end loop;
  select bool_or(e.job ->> 'dedupe_key' is not null), bool_or(octet_length((e.job -> 'input')::text) > 4000)
    into v_keyed, v_large
    from jsonb_array_elements(p_jobs) as e (job);
  return rowlock.store(p_jobs, coalesce(v_keyed, false), coalesce(v_large, false));
end
$rowlock$;
