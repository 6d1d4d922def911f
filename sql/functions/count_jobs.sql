-- How many jobs does a filter find? Exact up to 10,000 where that takes a look at 100,000 jobs at most, else about.
--
-- Returns: {"count": n, "about": bool}. About and 0: none was seen, and there may be some.
-- About: each phase is counted apart: newest first, and what waits along its lines too, so that a short queue is
--   counted however much waits elsewhere. What is more is judged by some 2,000 blocks, spread evenly: jobs of one kind
--   stand together, and a few long runs of ids would miss them.
-- Locks: none. Errors: RL001.
create or replace function rowlock.count_jobs(p_filter jsonb default '{}') returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $rowlock$
declare
  v_most constant integer := 10001;
  v_look constant integer := 100000;
  v_phase text;
  v_part jsonb;
  v_found bigint;
  v_to bigint;
  v_waiting record;
  v_days text[];
  v_blocks bigint;
  v_percent double precision;
  v_sample bigint;
  v_count bigint := 0;
  v_about boolean := false;
begin
  perform rowlock.require_list(p_filter, 1, null);
  for v_phase, v_part in
    select p.phase, p_filter || jsonb_build_object('state', jsonb_agg(p.state))
      from (select s.state,
                   case when s.state in ('running', 'dead_letter') then s.state
                        when s.state in ('done', 'failed', 'cancelled') then 'finished'
                        else 'waiting' end as phase
              from unnest(coalesce(rowlock.texts(p_filter -> 'state'),
                     '{queued,retryable,running,dead_letter,done,failed,cancelled}')) as s (state)) as p
     group by p.phase
  loop
    select cardinality(s.ids), s.searched_to
      into v_found, v_to
      from rowlock.search(v_part, null, null, null, true, v_most, v_look) as s;
    if v_to is not null and v_phase = 'waiting' and v_found < v_most then
      select * into v_waiting from rowlock.count_waiting(v_part, v_most, v_look);
      v_found := greatest(v_found, v_waiting.fitting);
      v_to := case when not v_waiting.is_all then v_to end;
    end if;
    if v_to is not null then
      -- Days of history are left out as search leaves them out: nothing ends before it was enqueued.
      v_days := array[
        to_char(greatest((p_filter ->> 'ended_since')::timestamptz, (p_filter ->> 'enqueued_since')::timestamptz),
          'YYYYMMDD'),
        to_char((p_filter ->> 'ended_until')::timestamptz, 'YYYYMMDD')];
      select sum(pg_relation_size(c.oid)) / current_setting('block_size')::integer
        into v_blocks
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace and n.nspname = rowlock.schema_name()
       where c.relkind = 'r'
         and case when v_phase = 'finished' then c.relname ~ '^finished_[0-9]+_[0-9]{8}$'
                    and (v_days [1] is null or right(c.relname, 8) >= v_days [1])
                    and (v_days [2] is null or right(c.relname, 8) <= v_days [2])
               else c.relname = v_phase end;
      v_percent := least(100, 100 * 2000 / greatest(v_blocks, 1)::double precision);
      select s.fitting into v_sample from rowlock.search(v_part, p_percent => v_percent) as s;
      v_about := v_about or v_percent < 100 or v_found >= v_most;
      v_found := greatest(v_found, round(v_sample * 100 / v_percent)::bigint);
    end if;
    v_count := v_count + v_found;
  end loop;
  return jsonb_build_object('count', v_count, 'about', v_about);
end
$rowlock$;
