-- Change the priority of a waiting job.
--
-- Transaction: may run in the caller's. Locks: the row in waiting.
-- Errors: RL001, RL010, RL011, RL012, RL030.
create or replace function rowlock.prioritize(
  p_id bigint, p_priority integer, p_actor text default null, p_reason text default null) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_tid tid;
begin
  if p_priority is null or p_priority not between -10 and 10 then
    perform rowlock.refuse('RL001', 'priority must be from -10 to 10', '{"path": "priority"}');
  end if;
  v_tid := rowlock.find_waiting(p_id, 'prioritize');
  update rowlock.waiting w set priority = p_priority where w.ctid = v_tid;
  perform rowlock.note('prioritize', p_id, null, p_actor, p_reason, jsonb_build_object('priority', p_priority));
end
$rowlock$;
