-- Of these queues, an object by name, the settings that their workers follow. Internal: heartbeat and register answer
-- them.
--
-- Returns: {queue: {"concurrency": n}}; a queue without a concurrency of its own is not in it.
create or replace function rowlock.served_settings(p_queues jsonb) returns json
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(json_object_agg(q.name, json_build_object('concurrency', q.concurrency)), '{}')
    from rowlock.queue q
   where p_queues ? q.name and q.concurrency is not null
$rowlock$;
