-- Raise the worker's flags on these queues: from the commit of this on, an enqueue wakes it. The worker looks again
-- until every transaction that may not have seen the flag is over (the claim tells xmin and xmax).
create or replace function rowlock.sleep(p_worker_id uuid, p_queues text[], p_until timestamptz) returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  insert into rowlock.sleeper (queue, worker_id, until)
  select q.queue, p_worker_id, p_until
    from unnest(p_queues) as q (queue)
   order by q.queue
      on conflict (queue, worker_id) do update set until = excluded.until
$rowlock$;
