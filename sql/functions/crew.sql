-- The living workers that serve a queue, and how each stands towards jobs of one kind there. Internal: why looks at it.
--
-- Returns: `held`: jobs of the queue that the database gave it; `stuck`: its slots there whose handlers ignored their
--   signal, as its last beat told. The jobs of these were reported and are not held any more, their slots are taken
--   still. `slots`: of the queue; where its queues share slots, no more than the others leave it; `shared`: how many
--   there are then, else null. `alone`: a job that runs alone on it. `ended`: in the last minute, of the queue.
create or replace function rowlock.crew(p_queue text, p_kind text, p_now timestamptz)
returns table (
  id uuid, name text, beat_at timestamptz, handles boolean, draining boolean, slots integer, held bigint, stuck integer,
  ended integer, alone bigint, shared integer)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $rowlock$
  select w.id, w.name, w.beat_at, p_kind = any (w.kinds), coalesce((w.facts ->> 'draining')::boolean, false),
         least(
           rowlock.slots_of(t.told, w.queues -> p_queue, q.concurrency),
           -- A case, since greatest passes over what is null.
           case when s.shared is not null then greatest(0, s.shared
             - (select count(*) from rowlock.running r where r.worker_id = w.id and r.queue <> p_queue)
             - (coalesce(rowlock.figure(w.facts, 'stuck'), 0) - coalesce(rowlock.figure(t.told, 'stuck'), 0)))
           end)::integer,
         (select count(*) from rowlock.running r where r.worker_id = w.id and r.queue = p_queue),
         coalesce(rowlock.figure(t.told, 'stuck'), 0),
         coalesce(rowlock.figure(t.told, 'done'), 0) + coalesce(rowlock.figure(t.told, 'failed'), 0),
         (select min(r.id) from rowlock.running r where r.worker_id = w.id and r.losses >= 2),
         s.shared
    from rowlock.worker w
   cross join lateral (select w.facts #> array['by_queue', p_queue]) as t (told)
   cross join lateral (select rowlock.figure(w.facts, 'slots')) as s (shared)
    left join rowlock.queue q on q.name = p_queue
   where w.expires_at > p_now and w.queues ? p_queue
$rowlock$;
