-- Put jobs in that differ in nothing but their inputs: what store does, at two thirds of its cost, since what they
-- share is read once. For jobs without dedupe keys whose inputs are small. Internal.
--
-- p_job: as one job of enqueue_many, without input. p_inputs: [input …].
-- Returns: {"first": id, "count": n}, the ids of the jobs in order, where nobody else drew one between them; otherwise
--   as store. So a thousand ids need not be written and read.
-- Transaction: may run in the caller's. Locks: none but of the rows that are written.
-- Errors: RL018. Where no queue has a bound, to know that is one block of an index.
create or replace function rowlock.store_alike(p_job jsonb, p_inputs jsonb) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_job record;
  v_ids bigint[];
  v_first bigint;
  v_last bigint;
begin
  perform rowlock.commit_durably();
  select j.kind, coalesce(j.queue, 'default') as queue, coalesce(j.priority, 0)::smallint as priority,
         coalesce(j.available_at, v_now + j.delay, v_now) as available_at,
         coalesce(j.expires_at, v_now + j.expires_in) as expires_at, j.tenant_id, j.idempotency_key,
         j.max_attempts::smallint as max_attempts, j.backoff, j.timeout, j.metadata, q.max_waiting, q.when_full
    into v_job
    -- numeric, since the JSON of some languages writes 5 as 5.0
    from jsonb_to_record(p_job) as j (
           kind text, queue text, priority numeric, delay interval, available_at timestamptz, expires_at timestamptz,
           expires_in interval, tenant_id text, idempotency_key text, max_attempts numeric, backoff jsonb,
           timeout interval, metadata jsonb)
    left join rowlock.queue q on q.max_waiting is not null and q.name = coalesce(j.queue, 'default');
  if v_job.max_waiting is not null and rowlock.is_full(v_job.queue, v_job.max_waiting) then
    if v_job.when_full is distinct from 'drop' then
      perform rowlock.refuse_full(v_job.queue, v_job.max_waiting, 0);
    end if;
    return json_build_object(
      'ids', array(select nextval('rowlock.job_id') from jsonb_array_elements(p_inputs))::text[],
      'existing', array(select n - 1 from generate_series(1, jsonb_array_length(p_inputs)) as n),
      'dropped', array(select n - 1 from generate_series(1, jsonb_array_length(p_inputs)) as n));
  end if;
  with stored as (
    insert into rowlock.waiting as w (
      id, available_at, enqueued_at, expires_at, timeout, priority, max_attempts, queue, kind, tenant_id,
      idempotency_key, backoff, metadata, input)
    select nextval('rowlock.job_id'), v_job.available_at, v_now, v_job.expires_at, v_job.timeout, v_job.priority,
           v_job.max_attempts, v_job.queue, v_job.kind, v_job.tenant_id, v_job.idempotency_key, v_job.backoff,
           v_job.metadata, i.input
      from jsonb_array_elements(p_inputs) as i (input)
    returning w.id
  )
  select array_agg(s.id), min(s.id), max(s.id) into v_ids, v_first, v_last from stored s;
  if v_ids is not null then
    perform rowlock.wake(array[v_job.queue], v_job.available_at);
  end if;
  if v_last - v_first + 1 = cardinality(v_ids) then
    return json_build_object('first', v_first::text, 'count', cardinality(v_ids));
  end if;
  return json_build_object(
    'ids', array(select i.id from unnest(v_ids) as i (id) order by i.id)::text[], 'existing', array[]::bigint[]);
end
$rowlock$;
