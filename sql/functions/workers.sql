-- The worker processes: who they are, what they serve, and how they fare, as their last beats told it.
--
-- Returns: one row a worker, the eldest first; those whose lease is over as long as the reaper has not buried them.
--   `is_alive`: the lease holds. `queues`: by name, the concurrency, what runs, is stuck, is prefetched and ended in
--   the last minute there. `slots`: handlers that may run at once, in all queues. `lag_ms`: of the event loop, the
--   worst of the last beat. `jobs`: what the database gave it, those that still wait for a slot among them.
create or replace function rowlock.workers()
returns table (
  id uuid, name text, release text, pid integer, started_at timestamptz, beat_at timestamptz, expires_at timestamptz,
  is_alive boolean, lease interval, queues jsonb, kinds text[], jobs bigint, running integer, prefetched integer,
  slots integer, stuck integer, draining boolean, listening boolean, lag_ms integer)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $rowlock$
  select w.id, w.name, w.release, rowlock.figure(w.facts, 'pid'), w.started_at, w.beat_at, w.expires_at,
         w.expires_at > t.now, w.lease, s.queues, w.kinds, coalesce(r.jobs, 0),
         coalesce(rowlock.figure(w.facts, 'running'), 0), coalesce(rowlock.figure(w.facts, 'prefetched'), 0),
         s.slots::integer, coalesce(rowlock.figure(w.facts, 'stuck'), 0),
         coalesce((w.facts ->> 'draining')::boolean, false), coalesce((w.facts ->> 'listening')::boolean, false),
         coalesce(rowlock.figure(w.facts, 'lag_ms'), 0)
    from (select rowlock.now()) as t (now)
   cross join rowlock.worker w
    left join (select r.worker_id, count(*) as jobs from rowlock.running r group by r.worker_id) as r
      on r.worker_id = w.id
   cross join lateral (
          select coalesce(jsonb_object_agg(e.queue, e.own || e.told || jsonb_strip_nulls(
                   jsonb_build_object('concurrency', e.slots))), '{}') as queues,
                 -- Where its queues share slots, there are not as many as each of them may take.
                 coalesce(least(sum(e.slots), rowlock.figure(w.facts, 'slots')), 0) as slots
            from (select k.queue, rowlock.slots_of(t.told, k.own, q.concurrency) as slots,
                         case when jsonb_typeof(k.own) = 'object' then k.own else '{}' end as own,
                         case when jsonb_typeof(t.told) = 'object' then t.told else '{}' end as told
                    from jsonb_each(case when jsonb_typeof(w.queues) = 'object' then w.queues else '{}' end)
                           as k (queue, own)
                   cross join lateral (select w.facts #> array['by_queue', k.queue]) as t (told)
                    left join rowlock.queue q on q.name = k.queue) as e) as s
   order by w.started_at, w.id
$rowlock$;
