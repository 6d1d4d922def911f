-- Of these queues, an object by name, the settings that their workers follow. Internal: heartbeat and register answer
-- them.
--
-- Returns: {queue: {"concurrency": n | null, "limited": boolean}}; `limited`: how many run or start is limited, so that
--   none of it is prefetched. A queue without a concurrency of its own and without these limits is not in it.
create or replace function rowlock.served_settings(p_queues jsonb) returns json
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(json_object_agg(q.name, json_build_object('concurrency', q.concurrency, 'limited',
           num_nonnulls(q.max_running, q.rate_starts) > 0)), '{}')
    from rowlock.queue q
   where p_queues ? q.name and num_nonnulls(q.concurrency, q.max_running, q.rate_starts) > 0
$rowlock$;
