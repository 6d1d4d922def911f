-- What is known of a claimed job, and of the worker that claimed it. Internal: why looks at it.
--
-- Returns: `holds`: the worker's lease is not over. `over_at`: when the job's time is over, by its own timeout or that
--   of its kind, which its worker tells; `is_told` false: by the default, for a worker of an older release does not
--   tell it. `held`: jobs of the queue that the worker has; `stuck`: its slots there that deaf handlers hold, whose
--   jobs it has no more.
create or replace function rowlock.holding(p_id bigint, p_now timestamptz)
returns table (
  worker_id uuid, who text, name text, is_there boolean, holds boolean, beat_at timestamptz, lease_until timestamptz,
  lease interval, may_take interval, over_at timestamptz, is_told boolean, slots integer, held bigint, stuck integer)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
  select r.worker_id, coalesce(w.name, r.worker_id::text), w.name, w.id is not null,
         coalesce(w.expires_at > p_now, false), w.beat_at, w.expires_at, w.lease, t.may_take,
         r.started_at + t.may_take,
         r.timeout is not null or coalesce(jsonb_typeof(w.facts -> 'timeouts') = 'object', false),
         rowlock.slots_of(t.told, w.queues -> r.queue, q.concurrency),
         (select count(*) from rowlock.running o where o.worker_id = r.worker_id and o.queue = r.queue),
         coalesce(rowlock.figure(t.told, 'stuck'), 0)
    from rowlock.running r
    left join rowlock.worker w on w.id = r.worker_id
    left join rowlock.queue q on q.name = r.queue
   cross join lateral (
          select w.facts #> array['by_queue', r.queue],
                 coalesce(r.timeout, rowlock.figure(w.facts -> 'timeouts', r.kind) * interval '1 ms',
                   interval '15 minutes')) as t (told, may_take)
   where r.id = p_id
$rowlock$;
