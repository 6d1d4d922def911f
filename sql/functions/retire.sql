-- A worker process ends in good order. Its row goes only when none of its jobs is left; otherwise its lease is over
-- at once, and the reaper gives the jobs back.
-- Locks: the worker's row. Why first, and by itself: it waits for a claim of this worker that is still in flight, and
-- only a later statement sees what that took; an update would pass beside the claim's key share.
create or replace function rowlock.retire(p_worker_id uuid) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
begin
  perform 1 from rowlock.worker w where w.id = p_worker_id for update;
  update rowlock.worker w set expires_at = least(w.expires_at, v_now) where w.id = p_worker_id;
  delete from rowlock.sleeper s where s.worker_id = p_worker_id;
  delete from rowlock.worker w
   where w.id = p_worker_id and not exists (select from rowlock.running r where r.worker_id = p_worker_id);
  return found;
end
$rowlock$;
