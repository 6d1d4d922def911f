-- Since when a queue is paused, by whom and why; no row where it is not. Internal.
create or replace function rowlock.paused(p_queue text)
returns table (paused_at timestamptz, paused_by text, paused_because text)
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select q.paused_at, a.actor, a.reason
    from rowlock.queue q
    left join lateral (
           select a.actor, a.reason
             from rowlock.audit a
            where a.queue = q.name and a.at >= q.paused_at and a.verb = 'pause'
            order by a.at limit 1) as a on true
   where q.name = p_queue and q.paused_at is not null
$rowlock$;
