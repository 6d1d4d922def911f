-- Let a paused queue be claimed again, and wake its workers.
-- Returns: whether anything changed.
create or replace function rowlock.resume(p_queue text, p_actor text default null, p_reason text default null)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  update rowlock.queue q set paused_at = null where q.name = p_queue and q.paused_at is not null;
  if not found then
    return false;
  end if;
  perform rowlock.note('resume', null, p_queue, p_actor, p_reason);
  perform rowlock.wake(array[p_queue], '-infinity');
  return true;
end
$rowlock$;
