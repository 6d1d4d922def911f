-- Give a dead letter up: it moves to history as cancelled, reason `discarded`, or
-- `discarded: ` and why where that is said.
--
-- Transaction: may run in the caller's. Locks: the row in dead_letter.
-- Errors: RL010, RL011, RL012, RL030.
create or replace function rowlock.discard(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.require_changed('discard', p_id, a.answer, a.detail)
     from rowlock.discard_many(array[p_id], p_actor, p_reason, p_wait => true) as a;
end
$rowlock$;
