-- How many waiting jobs does a filter find? Counted along their lines by the dispatch index, so that what waits in
-- other queues and of other kinds is not read, nor what is due where scheduled jobs are asked for. Internal: of
-- count_jobs.
--
-- p_most: counts to here. p_look: so many jobs are looked at.
-- Returns: fitting: how many were found; is_all: there are no others.
-- Locks: none.
create or replace function rowlock.count_waiting(
  p_filter jsonb, p_most integer, p_look integer, out fitting bigint, out is_all boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_custom_plan
as $rowlock$
declare
  v_now constant timestamptz := rowlock.now();
  v_lines constant integer := 2000;
  v_states constant text[] := rowlock.texts(p_filter -> 'state');
  v_queues constant text[] := rowlock.texts(p_filter -> 'queue');
  v_kinds constant text[] := rowlock.texts(p_filter -> 'kind');
  -- Not narrower than the filter, which judges each job that is found.
  v_since constant timestamptz := greatest((p_filter ->> 'available_since')::timestamptz,
    case when v_states <@ '{scheduled}' then v_now else '-infinity' end);
  v_until constant timestamptz := least((p_filter ->> 'available_until')::timestamptz,
    case when v_states <@ '{due}' then v_now else 'infinity' end);
  v_of text[];
  v_kind text[];
  v_priority smallint[];
  v_ids bigint[];
  v_fit bigint;
begin
  select array_agg(l.queue), array_agg(l.kind), array_agg(l.priority)
    into v_of, v_kind, v_priority
    from (select l.queue, l.kind, l.priority
            from unnest(coalesce(v_queues, array[null])) as q (name)
           cross join lateral rowlock.lines(q.name, v_lines) as l
           limit v_lines) as l;
  v_ids := array(
    select w.id
      from unnest(v_of, v_kind, v_priority) as l (queue, kind, priority)
     cross join lateral (
            select w.id
              from rowlock.waiting w
             where w.queue = l.queue and w.kind = l.kind and w.priority = l.priority
               and w.available_at >= v_since and w.available_at <= v_until
             order by w.available_at, w.id
             limit p_look + 1) as w
     where v_kinds is null or l.kind = any (v_kinds)
     limit p_look + 1);
  is_all := coalesce(cardinality(v_of), 0) < v_lines and cardinality(v_ids) <= p_look;
  fitting := 0;
  for v_from in 1 .. cardinality(v_ids) by 5000 loop
    if fitting >= p_most then
      is_all := false;
      return;
    end if;
    select cardinality(s.ids) into v_fit from rowlock.search(p_filter, v_ids [v_from : v_from + 4999]) as s;
    fitting := fitting + v_fit;
  end loop;
end
$rowlock$;
