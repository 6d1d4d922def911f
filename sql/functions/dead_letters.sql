-- Dead letters in groups: those of one queue and kind that have the same cause and the same error, but for its numbers.
--
-- p_filter: see filter_fault; it is understood that the state is dead_letter.
-- Returns: the largest groups first, at most p_limit. `error` is what a filter takes, see error_line; `sample_id` is
--   the newest of the group. `about`: only the newest 20,000 were looked at, so there are more than these.
-- Locks: none. Errors: RL001.
create or replace function rowlock.dead_letters(p_filter jsonb default '{}', p_limit integer default 50)
returns table (
  queue text, kind text, cause text, error text, jobs bigint, first_at timestamptz, last_at timestamptz,
  sample_id bigint, about boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = on
set enable_nestloop = off
set enable_hashagg = on
set enable_sort = off
set enable_indexscan = on
set max_parallel_workers_per_gather = 0
set jit = off
as $rowlock$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_to bigint;
begin
  perform rowlock.require_list(p_filter, p_limit, null);
  if p_filter ? 'state' and 'dead_letter' <> all (rowlock.texts(p_filter -> 'state')) then
    perform rowlock.refuse('RL001', 'state of dead letters is dead_letter: leave it out', '{"path": "state"}');
  end if;
  select s.ids, s.searched_to
    into v_ids, v_to
    from rowlock.search(p_filter || '{"state": "dead_letter"}', null, null, null, true, 20000, 20000) as s;
  return query
    select d.queue, d.kind, d.cause, l.error, count(*), min(d.dead_at), max(d.dead_at), max(d.id), v_to is not null
      from unnest(v_ids) as o (id)
      join rowlock.dead_letter d on d.id = o.id
       -- One walk along the ids and a hash: found one by one, 20,000 of them cost 60,000 blocks.
       and d.id between v_ids [cardinality(v_ids)] and v_ids [1]
     cross join lateral (select rowlock.error_line(d.error)) as l (error)
     group by d.queue, d.kind, d.cause, l.error
     order by count(*) desc, max(d.id) desc
     limit p_limit;
end
$rowlock$;
