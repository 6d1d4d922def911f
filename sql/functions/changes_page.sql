-- A page of what people and programs changed, newest first, and where the next page starts.
--
-- p_filter: `job_id`, `queue`, `verb`, `actor`: equal; `since`, `until`: half-open. All that are given must hold.
-- p_before: the id that ended the page before; null: from the newest on.
-- Returns: {"changes": [{"id", "at", "verb", "job_id", "queue", "actor", "reason", "detail"} …], "next": "id" | null}.
--   Null: nothing older fits. A page may be short with a `next`: one call looks at 50,000 changes at most. Those of a
--   job, and those of a queue with up to 200,000 in that time, are found at once, whatever was done elsewhere.
-- Locks: none. Errors: RL001.
create or replace function rowlock.changes_page(
  p_filter jsonb default '{}', p_limit integer default 50, p_before bigint default null) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_indexscan = on
set max_parallel_workers_per_gather = 0
set jit = off
set plan_cache_mode = force_custom_plan
as $rowlock$
declare
  v_fault jsonb := rowlock.changes_fault(p_filter);
  v_job_id bigint;
  v_queue constant text := p_filter ->> 'queue';
  v_verb constant text := p_filter ->> 'verb';
  v_actor constant text := left(p_filter ->> 'actor', 200);
  v_since timestamptz;
  v_until timestamptz;
  v_look constant integer := 50000;
  v_by_queue boolean := false;
  v_changes jsonb;
  v_next bigint;
begin
  perform rowlock.require_list('{}', p_limit, p_before);
  if v_fault is not null then
    perform rowlock.refuse(v_fault ->> 'sqlstate', v_fault ->> 'message', v_fault - 'sqlstate' - 'message');
  end if;
  v_job_id := p_filter ->> 'job_id';
  v_since := p_filter ->> 'since';
  v_until := p_filter ->> 'until';

  if v_job_id is null and v_queue is not null then
    select count(*) <= 200000
      into v_by_queue
      from (select 1
              from rowlock.audit a
             where a.queue = v_queue and a.at >= coalesce(v_since, '-infinity')
               and a.at < coalesce(v_until, 'infinity')
             limit 200001) as few;
  end if;

  -- One more than the page holds tells whether anything is behind it; so does the last row that may be looked at.
  with looked as (
    select a.*, row_number() over () as place
      from (select a.*
              from rowlock.audit a
             where (p_before is null or a.id < p_before)
               and (v_job_id is null or a.job_id = v_job_id)
               and (not v_by_queue or (a.queue = v_queue and a.at >= coalesce(v_since, '-infinity')
                    and a.at < coalesce(v_until, 'infinity') and (v_verb is null or a.verb = v_verb)
                    and (v_actor is null or a.actor = v_actor)))
             -- The sum keeps the planner from walking all changes in order for the few of one job or queue.
             order by case when v_job_id is null and not v_by_queue then a.id else a.id + 0 end desc
             limit case when v_by_queue then p_limit + 1 else v_look end) as a
  ), judged as (
    select l.*,
           (v_queue is null or l.queue = v_queue)
           and (v_verb is null or l.verb = v_verb)
           and (v_actor is null or l.actor = v_actor)
           and (v_since is null or l.at >= v_since)
           and (v_until is null or l.at < v_until) as fits
      from looked l
  ), found as (
    select f.*, row_number() over () as n
      from (select j.* from judged j where j.fits or j.place = v_look limit p_limit + 1) as f
  )
  select jsonb_agg(jsonb_build_object('id', f.id::text, 'at', f.at, 'verb', f.verb, 'job_id', f.job_id::text,
           'queue', f.queue, 'actor', f.actor, 'reason', f.reason, 'detail', f.detail) order by f.n)
           filter (where f.fits and f.n <= p_limit),
         case when count(*) > p_limit then min(f.id) filter (where f.n <= p_limit)
              when bool_or(f.place = v_look) then min(f.id) end
    into v_changes, v_next
    from found f;
  return jsonb_build_object('changes', coalesce(v_changes, '[]'), 'next', v_next::text);
end
$rowlock$;
