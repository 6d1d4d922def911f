-- Which jobs does a filter find? The one place where a filter becomes a predicate. Internal; the filter has been
-- checked by filter_fault.
--
-- p_ids: only these are judged, wherever they are, and all of them: which of them fit now? Else all jobs are walked in
--   the order of their ids:
-- p_from: where to start, exclusive; null: at the end of that side. p_to: where to end, inclusive.
-- p_limit: at most so many are found. p_look: at most so many jobs are looked at, whatever their ids: no gap costs
--   anything, and what an index leads to directly (not done, running, dead letters, days, keys) is all that is counted.
-- Returns: ids in the order of the walk; searched_to, the last id that was looked at when the walk ended early, since
--   it found or looked at enough: go on from there. Null: nothing is behind.
-- p_percent: instead of all that, a sample: about so many percent of the blocks of waiting, dead letters and history,
--   and all that runs. How many of them fit? `fitting` says it, and nothing else is returned: of a count.
-- Stable: one snapshot for all of it, that of the statement which calls; a later statement of a volatile function has
--   a later one. A job that moves between its tables is therefore seen once and never missed.
-- Locks: none.
-- Why custom plans: a condition that is absent folds away, days are pruned, and partial indexes are found to serve.
-- Why conditions stand in two places: those inside are served by indexes, so that what they leave out costs nothing;
--   those outside are judged row by row, and count. Why four branches of history: the days are partitions of a class
--   first, so only a class that is named lets days be pruned.
create or replace function rowlock.search(
  p_filter jsonb, p_ids bigint[] default null, p_from bigint default null, p_to bigint default null,
  p_newest_first boolean default true, p_limit integer default 50, p_look integer default 100000,
  p_percent double precision default null, out ids bigint[], out searched_to bigint, out fitting bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set enable_indexscan = on
set enable_sort = off
set enable_partition_pruning = on
set max_parallel_workers_per_gather = 0
set jit = off
set plan_cache_mode = force_custom_plan
as $rowlock$
declare
  v_now constant timestamptz := rowlock.now();
  v_states constant text[] := rowlock.texts(p_filter -> 'state');
  v_queues constant text[] := rowlock.texts(p_filter -> 'queue');
  v_kinds constant text[] := rowlock.texts(p_filter -> 'kind');
  v_tenants constant text[] := rowlock.texts(p_filter -> 'tenant_id');
  v_causes constant text[] := rowlock.texts(p_filter -> 'cause');
  v_dedupe_key constant text := p_filter ->> 'dedupe_key';
  v_idempotency_key constant text := p_filter ->> 'idempotency_key';
  v_error constant text := p_filter ->> 'error';
  v_metadata constant jsonb := p_filter -> 'metadata';
  v_worker_id constant uuid := p_filter ->> 'worker_id';
  v_retried_from constant bigint := p_filter ->> 'retried_from';
  v_enqueued_since constant timestamptz := p_filter ->> 'enqueued_since';
  v_enqueued_until constant timestamptz := p_filter ->> 'enqueued_until';
  v_available_since constant timestamptz := p_filter ->> 'available_since';
  v_available_until constant timestamptz := p_filter ->> 'available_until';
  v_ended_since constant timestamptz := p_filter ->> 'ended_since';
  v_ended_until constant timestamptz := p_filter ->> 'ended_until';
  -- What a phase cannot have, it is not searched for.
  v_waiting boolean := coalesce(v_states && '{queued,retryable,scheduled,due}', true)
    and v_ended_since is null and v_ended_until is null and v_worker_id is null and v_error is null;
  v_running constant boolean := coalesce('running' = any (v_states), true)
    and v_ended_since is null and v_ended_until is null and v_causes is null and v_error is null;
  v_dead constant boolean := coalesce('dead_letter' = any (v_states), true);
  v_finished boolean := coalesce(v_states && '{done,failed,cancelled}', true) and v_error is null;
  v_done constant boolean := coalesce('done' = any (v_states), true);
  -- Nothing ends before it was enqueued, so those bounds prune days too.
  v_first_day constant timestamptz := date_trunc('day', greatest(v_ended_since, v_enqueued_since));
  v_day_after constant timestamptz := date_trunc('day', v_ended_until) + interval '1 day';
  v_low bigint;
  v_high bigint;
  v_few bigint[];
  v_page bigint[];
  v_apart bigint[] := '{}';
  v_apart_to bigint;
  v_by text := 'id';
begin
  ids := '{}';
  if p_ids is null and p_percent is null then
    if p_newest_first then
      v_low := p_to;
      v_high := case when p_from > 0 then p_from - 1 when p_from <= 0 then 0 end;
    elsif p_from = 9223372036854775807 then
      return;
    else
      v_low := p_from + 1;
      v_high := p_to;
    end if;
    -- No index of waiting has these in order of id. A key leads to its holder in each queue. Queues of up to 20,000
    -- jobs are read whole by the dispatch index, ids only, and judged in the order of the walk until enough fit.
    if v_waiting and v_dedupe_key is not null then
      v_few := array(
        with recursive q (name) as (
          (select d.queue from rowlock.dedupe d order by d.queue limit 1)
          union all
          select (select d.queue from rowlock.dedupe d where d.queue > q.name order by d.queue limit 1)
            from q where q.name is not null
        )
        select d.job_id
          from q
          join rowlock.dedupe d on d.queue = q.name and d.key = v_dedupe_key);
    elsif v_waiting and v_queues is not null then
      v_few := array(
        select w.id
          from rowlock.waiting w
         where w.queue = any (v_queues) and (v_kinds is null or w.kind = any (v_kinds))
         limit 20001);
    end if;
    if cardinality(v_few) <= 20000 then
      v_waiting := false;
      v_few := array(
        select e from unnest(v_few) as e
         where (v_low is null or e >= v_low) and (v_high is null or e <= v_high)
         order by case when p_newest_first then e end desc, e);
      for v_from in 1 .. cardinality(v_few) by 2000 loop
        v_page := v_few [v_from : v_from + 1999];
        select v_apart || s.ids
          into v_apart
          from rowlock.search(
            p_filter || jsonb_build_object('state', coalesce((
              select jsonb_agg(e) from unnest(v_states) as e where e in ('queued', 'retryable', 'scheduled', 'due')),
              '["queued", "retryable"]')),
            v_page) as s;
        if cardinality(v_apart) >= p_limit and v_from + 1999 < cardinality(v_few) then
          v_apart_to := v_page [2000];
          exit;
        end if;
      end loop;
    end if;
    -- History has indexes by key and id: it is walked by them, apart from what has none.
    if v_finished and coalesce(v_dedupe_key, v_idempotency_key) is not null then
      if v_waiting or v_running or v_dead then
        v_finished := false;
        select v_apart || s.ids,
               case when p_newest_first then greatest(s.searched_to, v_apart_to)
                    else least(s.searched_to, v_apart_to) end
          into v_apart, v_apart_to
          from rowlock.search(
            p_filter || jsonb_build_object('state', coalesce((
              select jsonb_agg(e) from unnest(v_states) as e where e in ('done', 'failed', 'cancelled')),
              '["done", "failed", "cancelled"]')),
            null, p_from, p_to, p_newest_first, p_limit, p_look) as s;
      else
        v_by := case when v_dedupe_key is not null then 'dedupe_key' else 'idempotency_key' end;
      end if;
    end if;
  end if;

  with job as not materialized (
    select w.id, 'waiting'::text as phase, null::smallint as class, null::smallint as kept,
           case when w.cause is null then 'queued' else 'retryable' end as state,
           w.queue, w.kind, w.tenant_id, w.cause, w.dedupe_key, w.idempotency_key, null::uuid as worker_id,
           w.retried_from, w.enqueued_at, w.available_at, null::timestamptz as ended_at, null::jsonb as error,
           w.metadata
      from rowlock.waiting w
     union all
    select r.id, 'running'::text, null::smallint, null::smallint, 'running'::text,
           r.queue, r.kind, r.tenant_id, null::text, r.dedupe_key, r.idempotency_key, r.worker_id,
           r.retried_from, r.enqueued_at, r.available_at, null::timestamptz, null::jsonb, r.metadata
      from rowlock.running r
     union all
    select d.id, 'dead_letter'::text, null::smallint, null::smallint, 'dead_letter'::text,
           d.queue, d.kind, d.tenant_id, d.cause, d.dedupe_key, d.idempotency_key, d.worker_id,
           d.retried_from, d.enqueued_at, d.available_at, d.dead_at, d.error, d.metadata
      from rowlock.dead_letter d
     union all
    select f.id, 'finished'::text, 1::smallint, f.retention_days, f.state,
           f.queue, f.kind, f.tenant_id, f.cause, f.dedupe_key, f.idempotency_key, f.worker_id,
           f.retried_from, f.enqueued_at, f.available_at, f.finished_at, null::jsonb, f.metadata
      from rowlock.finished f
     union all
    select f.id, 'finished'::text, 7::smallint, f.retention_days, f.state,
           f.queue, f.kind, f.tenant_id, f.cause, f.dedupe_key, f.idempotency_key, f.worker_id,
           f.retried_from, f.enqueued_at, f.available_at, f.finished_at, null::jsonb, f.metadata
      from rowlock.finished f
     union all
    select f.id, 'finished'::text, 30::smallint, f.retention_days, f.state,
           f.queue, f.kind, f.tenant_id, f.cause, f.dedupe_key, f.idempotency_key, f.worker_id,
           f.retried_from, f.enqueued_at, f.available_at, f.finished_at, null::jsonb, f.metadata
      from rowlock.finished f
     union all
    select f.id, 'finished'::text, 90::smallint, f.retention_days, f.state,
           f.queue, f.kind, f.tenant_id, f.cause, f.dedupe_key, f.idempotency_key, f.worker_id,
           f.retried_from, f.enqueued_at, f.available_at, f.finished_at, null::jsonb, f.metadata
      from rowlock.finished f
  ), sampled as not materialized (
    select w.id, 'waiting'::text as phase, null::smallint as class, null::smallint as kept,
           case when w.cause is null then 'queued' else 'retryable' end as state,
           w.queue, w.kind, w.tenant_id, w.cause, w.dedupe_key, w.idempotency_key, null::uuid as worker_id,
           w.retried_from, w.enqueued_at, w.available_at, null::timestamptz as ended_at, null::jsonb as error,
           w.metadata
      from rowlock.waiting w tablesample system (coalesce(p_percent, 0)) repeatable (1)
     union all
    select r.id, 'running'::text, null::smallint, null::smallint, 'running'::text,
           r.queue, r.kind, r.tenant_id, null::text, r.dedupe_key, r.idempotency_key, r.worker_id,
           r.retried_from, r.enqueued_at, r.available_at, null::timestamptz, null::jsonb, r.metadata
      from rowlock.running r tablesample system (100)
     union all
    select d.id, 'dead_letter'::text, null::smallint, null::smallint, 'dead_letter'::text,
           d.queue, d.kind, d.tenant_id, d.cause, d.dedupe_key, d.idempotency_key, d.worker_id,
           d.retried_from, d.enqueued_at, d.available_at, d.dead_at, d.error, d.metadata
      from rowlock.dead_letter d tablesample system (coalesce(p_percent, 0)) repeatable (1)
     union all
    select f.id, 'finished'::text, null::smallint, f.retention_days, f.state,
           f.queue, f.kind, f.tenant_id, f.cause, f.dedupe_key, f.idempotency_key, f.worker_id,
           f.retried_from, f.enqueued_at, f.available_at, f.finished_at, null::jsonb, f.metadata
      from rowlock.finished f tablesample system (coalesce(p_percent, 0)) repeatable (1)
     where p_percent is not null or f.retention_days = -1
  ), looked as (
    select w.*, row_number() over () as place
      from (select j.*
              from job j
             where p_ids is null and p_percent is null
               and (v_waiting or j.phase <> 'waiting')
               and (v_running or j.phase <> 'running')
               and (v_dead or j.phase <> 'dead_letter')
               and (v_finished or j.phase <> 'finished')
               -- No class is -1: of history that is not asked for not even the plan looks at its days.
               and (j.phase <> 'finished' or j.kept = case
                 when v_finished and p_ids is null and p_percent is null then j.class else -1 end)
               and (v_low is null or j.id >= v_low)
               and (v_high is null or j.id <= v_high)
               and (j.phase <> 'finished' or v_done or j.state <> 'done')
               and (j.phase <> 'finished' or v_first_day is null or j.ended_at >= v_first_day)
               and (j.phase <> 'finished' or v_day_after is null or j.ended_at < v_day_after)
               and (j.phase <> 'finished' or v_dedupe_key is null or j.dedupe_key = v_dedupe_key)
               and (j.phase <> 'finished' or v_idempotency_key is null or j.idempotency_key = v_idempotency_key)
             order by case when not p_newest_first then null when v_by = 'dedupe_key' then j.dedupe_key
                        when v_by = 'idempotency_key' then j.idempotency_key end desc,
                      case when p_newest_first then null when v_by = 'dedupe_key' then j.dedupe_key
                        when v_by = 'idempotency_key' then j.idempotency_key end,
                      case when p_newest_first then j.id end desc, case when not p_newest_first then j.id end
             limit p_look) as w
     union all
    -- `offset 0` is a fence: without it a condition on the queue reaches in, and where no statistics know that queue
    -- the whole of it is read once for each id.
    select g.*, null
      from unnest(p_ids) as i (id)
     cross join lateral (
            select j.*
              from job j
             where j.id = i.id
               and (v_waiting or j.phase <> 'waiting')
               and (v_running or j.phase <> 'running')
               and (v_dead or j.phase <> 'dead_letter')
               and (v_finished or j.phase <> 'finished')
               and (j.phase <> 'finished'
                    or j.kept = case when v_finished and p_ids is not null then j.class else -1 end)
               and (j.phase <> 'finished' or v_first_day is null or j.ended_at >= v_first_day)
               and (j.phase <> 'finished' or v_day_after is null or j.ended_at < v_day_after)
            offset 0) as g
     where p_ids is not null
     union all
    select s.*, null
      from sampled s
     where p_percent is not null
       and (v_waiting or s.phase <> 'waiting')
       and (v_running or s.phase <> 'running')
       and (v_dead or s.phase <> 'dead_letter')
       and (v_finished or s.phase <> 'finished')
       and (s.phase <> 'finished' or v_first_day is null or s.ended_at >= v_first_day)
       and (s.phase <> 'finished' or v_day_after is null or s.ended_at < v_day_after)
  ), judged as (
    select l.id, l.place,
           (v_states is null or l.state = any (v_states)
             or (l.phase = 'waiting' and (('due' = any (v_states) and l.available_at <= v_now)
                  or ('scheduled' = any (v_states) and l.state = 'queued' and l.available_at > v_now))))
           and (v_queues is null or l.queue = any (v_queues))
           and (v_kinds is null or l.kind = any (v_kinds))
           and (v_tenants is null or l.tenant_id = any (v_tenants))
           and (v_causes is null or l.cause = any (v_causes))
           and (v_dedupe_key is null or l.dedupe_key = v_dedupe_key)
           and (v_idempotency_key is null or l.idempotency_key = v_idempotency_key)
           and (v_worker_id is null or l.worker_id = v_worker_id)
           and (v_retried_from is null or l.retried_from = v_retried_from)
           and (v_enqueued_since is null or l.enqueued_at >= v_enqueued_since)
           and (v_enqueued_until is null or l.enqueued_at < v_enqueued_until)
           and (v_available_since is null or l.available_at >= v_available_since)
           and (v_available_until is null or l.available_at < v_available_until)
           and (v_ended_since is null or l.ended_at >= v_ended_since)
           and (v_ended_until is null or l.ended_at < v_ended_until)
           and (v_metadata is null or l.metadata @> v_metadata)
           and (v_error is null or rowlock.error_line(l.error) = v_error) as fits
      from looked l
  ), found as (
    -- The last row that may be looked at is kept even if it does not fit: it says how far the walk came.
    select j.id, j.place, j.fits
      from judged j
     where j.fits or j.place = p_look
     limit case when p_ids is null and p_percent is null then p_limit end
  )
  select coalesce(array_agg(f.id) filter (where f.fits and p_percent is null), '{}'),
         case when count(*) = p_limit or bool_or(f.place = p_look)
           then case when p_newest_first then min(f.id) else max(f.id) end end,
         count(*) filter (where f.fits)
    into ids, searched_to, fitting
    from found f;

  if p_percent is not null then
    searched_to := null;
    return;
  end if;
  fitting := null;
  if p_ids is not null then
    ids := array(select e from unnest(ids) as e group by e order by case when p_newest_first then e end desc, e);
    searched_to := null;
  elsif cardinality(v_apart) > 0 or v_apart_to is not null then
    -- Nothing beyond what all parts have searched: it comes with the next call.
    searched_to := case when p_newest_first then greatest(searched_to, v_apart_to)
                        else least(searched_to, v_apart_to) end;
    ids := array(
      select e
        from unnest(ids || v_apart) as e
       where searched_to is null or e = searched_to or (e > searched_to) = p_newest_first
       order by case when p_newest_first then e end desc, e
       limit p_limit);
    if cardinality(ids) = p_limit then
      searched_to := ids [p_limit];
    end if;
  end if;
end
$rowlock$;
