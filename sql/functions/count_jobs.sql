-- How many jobs does a filter find? Exact up to 10,000 where that takes a look at 100,000 jobs at most, else about.
--
-- Returns: {"count": n, "about": bool}.
-- About: what the newest 100,000 hold is counted; what is older is judged by four samples of 2,000, spread over the
--   ids that are left. It is never more than the tables hold.
-- Locks: none. Errors: RL001.
create or replace function rowlock.count_jobs(p_filter jsonb default '{}') returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_ids bigint[];
  v_to bigint;
  v_found bigint;
  v_about numeric;
  v_most numeric;
  v_first bigint;
  v_low numeric;
  v_high numeric;
begin
  perform rowlock.require_list(p_filter, 1, null);
  select s.ids, s.searched_to
    into v_ids, v_to
    from rowlock.search(p_filter, null, null, null, true, 10001, 100000) as s;
  v_found := cardinality(v_ids);
  if v_to is null then
    return jsonb_build_object('count', v_found, 'about', false);
  end if;

  -- What is left to judge lies between the oldest job of these states and where the look ended.
  select coalesce(s.ids [1], s.searched_to)
    into v_first
    from rowlock.search(
      case when p_filter ? 'state' then jsonb_build_object('state', p_filter -> 'state') else '{}' end,
      null, null, v_to - 1, false, 1, 1) as s;
  v_about := v_found;
  if v_first is not null then
    for v_part in 0 .. 3 loop
      v_high := v_to - 1 - div((v_to - v_first)::numeric * v_part, 4);
      v_low := v_to - div((v_to - v_first)::numeric * (v_part + 1), 4);
      continue when v_high < v_low;
      declare
        v_sample bigint[];
        v_sampled_to bigint;
      begin
        select s.ids, s.searched_to
          into v_sample, v_sampled_to
          from rowlock.search(p_filter, null, (v_high + 1)::bigint, v_low::bigint, true, 2000, 2000) as s;
        v_about := v_about + case
          when v_sampled_to is null then cardinality(v_sample)
          else cardinality(v_sample) * (v_high - v_low + 1) / (v_high - v_sampled_to + 1)
        end;
      end;
    end loop;
  end if;

  select sum(case when c.reltuples > 0 and c.relpages > 0
               then c.reltuples::numeric * pg_relation_size(c.oid) / (8192 * c.relpages::numeric)
               else pg_relation_size(c.oid) / 100.0 end)
    into v_most
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = rowlock.schema_name()
   where c.relkind = 'r' and c.relname ~ '^(waiting|running|dead_letter|finished_[0-9]+_[0-9]{8})$';
  return jsonb_build_object('count', greatest(v_found, round(least(v_about, v_most))), 'about', true);
end
$rowlock$;
