-- Delete an ended job for good: out of history, with its attempts and its input. What was done, by whom and why, stays
-- in audit. A dead letter is discarded first.
--
-- Transaction: may run in the caller's. Locks: the row in finished, then its large input.
-- Errors: RL010, RL011, RL012 it has not ended, RL030.
create or replace function rowlock.purge(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.require_changed('purge', p_id, a.answer, a.detail)
     from rowlock.purge_many(array[p_id], p_actor, p_reason, p_wait => true) as a;
end
$rowlock$;
