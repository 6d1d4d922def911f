-- Keep what somebody did to many jobs, and why: a row for each, in id order. `p_details` has the detail of each by its
-- id, `p_detail` is that of all others; `p_queues` has the queue of each by its id. Internal.
create or replace function rowlock.note_each(
  p_verb text, p_ids bigint[], p_actor text, p_reason text, p_detail jsonb default null, p_details jsonb default '{}',
  p_queues jsonb default '{}')
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
  insert into rowlock.audit (at, verb, job_id, queue, actor, reason, detail)
  select n.at, p_verb, g.id, p_queues ->> g.id::text, left(p_actor, 200), left(p_reason, 1000),
         coalesce(p_details -> g.id::text, p_detail)
    from unnest(p_ids) as g (id)
   cross join (select rowlock.now() as at offset 0) as n
   order by g.id
$rowlock$;
