-- Put jobs in whose values have been checked: by enqueue_many, or by the TypeScript client, which has the same rules.
-- The table's constraints stand behind both. Internal.
--
-- p_jobs: as enqueue_many takes it. p_keyed, p_large: whether any job has a dedupe key, or an input for payload.
-- Returns: {"ids": ["…"], "existing": [n …]}: one id per job in order; `existing` are those (from 0) that were not
--   created because a live job of their queue has their key. Duplicates inside one call: the first wins. Where any
--   were dropped, since their queue is full, "dropped": [n …] too; their ids are those of no job. They are among
--   `existing`, for a client that knows no more than created or not.
-- Order: keys first, in their own order, so that two bulk calls cannot deadlock; then the jobs, in order.
-- Waits: for another open transaction that has just taken the same key.
-- Errors: RL018. Where no queue has a bound, to know that is one block of an index.
create or replace function rowlock.store(p_jobs jsonb, p_keyed boolean, p_large boolean) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_numbered boolean := p_keyed or p_large;
  v_ids bigint[];
  v_holders bigint[];
  v_stored bigint[];
  v_queues text[];
  v_due timestamptz;
begin
  perform rowlock.commit_durably();
  -- Ids are drawn beforehand only where a second table needs them.
  if v_numbered then
    v_ids := array(select nextval('rowlock.job_id') from generate_series(1, jsonb_array_length(p_jobs)));
    v_holders := v_ids;
  end if;
  if p_keyed then
    v_holders := rowlock.take_keys(p_jobs, v_ids);
  end if;
  if exists (
       select from rowlock.queue q
        where q.max_waiting is not null
          and (q.name = 'default' or p_jobs @> jsonb_build_array(jsonb_build_object('queue', q.name)))) then
    v_numbered := true;
    v_ids := coalesce(v_ids, array(
      select nextval('rowlock.job_id') from generate_series(1, jsonb_array_length(p_jobs))));
    v_holders := rowlock.turn_away(p_jobs, v_ids, coalesce(v_holders, v_ids));
  end if;
  if p_large then
    insert into rowlock.payload (job_id, body)
    select v_ids[g.n], g.input
      from rows from (jsonb_to_recordset(p_jobs) as (input jsonb)) with ordinality as g (input, n)
     where octet_length(g.input::text) > 4000 and v_ids[g.n] = v_holders[g.n];
  end if;

  with stored as (
    insert into rowlock.waiting as w (
      id, available_at, enqueued_at, expires_at, timeout, priority, max_attempts, queue, kind, tenant_id, dedupe_key,
      idempotency_key, backoff, metadata, input)
    select case when v_numbered then v_ids[g.n] else nextval('rowlock.job_id') end,
           coalesce(g.available_at, v_now + g.delay, v_now), v_now, coalesce(g.expires_at, v_now + g.expires_in),
           g.timeout, coalesce(g.priority, 0)::smallint, g.max_attempts::smallint, coalesce(g.queue, 'default'),
           g.kind, g.tenant_id, g.dedupe_key, g.idempotency_key, g.backoff, g.metadata,
           case when not p_large or g.input is null or octet_length(g.input::text) <= 4000
                then coalesce(g.input, 'null') end
      -- numeric, since the JSON of some languages writes 5 as 5.0
      from rows from (jsonb_to_recordset(p_jobs) as (
             kind text, input jsonb, queue text, priority numeric, delay interval, available_at timestamptz,
             expires_at timestamptz, expires_in interval, tenant_id text, dedupe_key text, idempotency_key text,
             max_attempts numeric, backoff jsonb, timeout interval, metadata jsonb))
           with ordinality as g (
             kind, input, queue, priority, delay, available_at, expires_at, expires_in, tenant_id, dedupe_key,
             idempotency_key, max_attempts, backoff, timeout, metadata, n)
     where not v_numbered or v_ids[g.n] = v_holders[g.n]
    returning w.id, w.queue, w.available_at
  )
  -- In order of their ids, which is that of the jobs: `distinct` sorts what all aggregates read.
  select array_agg(s.id order by s.id), array_agg(distinct s.queue), min(s.available_at)
    into v_stored, v_queues, v_due
    from stored s;
  if v_queues is not null then
    perform rowlock.wake(v_queues, v_due);
  end if;
  if array_position(v_holders, null) is not null then
    return json_build_object(
      'ids', array(
        select coalesce(g.holder, g.id)
          from unnest(v_ids, v_holders) with ordinality as g (id, holder, n)
         order by g.n)::text[],
      'existing', array(
        select g.n - 1
          from unnest(v_ids, v_holders) with ordinality as g (id, holder, n)
         where g.id is distinct from g.holder),
      'dropped', array(
        select g.n - 1 from unnest(v_holders) with ordinality as g (holder, n) where g.holder is null));
  end if;
  return json_build_object(
    'ids', coalesce(v_holders, v_stored, '{}')::text[],
    'existing', array(
      select g.n - 1 from unnest(v_ids, v_holders) with ordinality as g (id, holder, n) where g.id <> g.holder));
end
$rowlock$;
