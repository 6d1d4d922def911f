-- Change the priority of a waiting job.
--
-- Transaction: may run in the caller's. Locks: the row in waiting.
-- Errors: RL001, RL010, RL011, RL012, RL030.
create or replace function rowlock.prioritize(
  p_id bigint, p_priority integer, p_actor text default null, p_reason text default null) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.require_changed('prioritize', p_id, a.answer, a.detail)
     from rowlock.prioritize_many(array[p_id], p_priority, p_actor, p_reason, p_wait => true) as a;
end
$rowlock$;
