-- Stop claims of a queue. What runs goes on; what is claimed already starts.
-- Returns: whether anything changed. Errors: RL001.
create or replace function rowlock.pause(p_queue text, p_actor text default null, p_reason text default null)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if p_queue is null or octet_length(p_queue) not between 1 and 100 then
    perform rowlock.refuse('RL001', 'queue must have 1 to 100 bytes', '{"path": "queue"}');
  end if;
  insert into rowlock.queue as q (name, paused_at) values (p_queue, rowlock.now())
      on conflict (name) do update set paused_at = excluded.paused_at where q.paused_at is null;
  if not found then
    return false;
  end if;
  perform rowlock.note('pause', null, p_queue, p_actor, p_reason);
  return true;
end
$rowlock$;
