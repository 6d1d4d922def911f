-- The names of the queues that are known at this moment, in order: some job waits, runs or is a dead letter in them, a
-- living worker serves them, or they have settings. The indexes are hopped from name to name. Internal.
--
-- Returns: at most p_limit names, those after p_after.
create or replace function rowlock.queue_names(p_after text default '', p_limit integer default 1000)
returns setof text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
  with recursive waits (queue) as (
    (select w.queue from rowlock.waiting w where w.queue > p_after order by w.queue limit 1)
    union all
    select (select w.queue from rowlock.waiting w where w.queue > f.queue order by w.queue limit 1)
      from waits f where f.queue is not null
  ), dead (queue) as (
    (select d.queue from rowlock.dead_letter d where d.queue > p_after order by d.queue limit 1)
    union all
    select (select d.queue from rowlock.dead_letter d where d.queue > f.queue order by d.queue limit 1)
      from dead f where f.queue is not null
  )
  select n.queue
    from ((select w.queue from waits w limit p_limit)
          union
          (select d.queue from dead d limit p_limit)
          union
          select r.queue from rowlock.running r
          union
          select q.name from rowlock.queue q
          union
          select k.queue
            from rowlock.worker w
           cross join lateral jsonb_object_keys(
                   case when jsonb_typeof(w.queues) = 'object' then w.queues else '{}' end) as k (queue)
           where w.expires_at > rowlock.now()) as n (queue)
   where n.queue > p_after
   order by n.queue
   limit p_limit
$rowlock$;
